/* Reading from a tier: the values of a span, checked, where they lie. What an answer points into is kept by one object
 * that goes with it: pins on segments, cursors, and buffers of what was decompressed.
 *
 * One hash over the bytes is most of what a read from memory costs, and it is made once a read: RocksDB makes its own of
 * the block that a stored value lies in (it must, see rocks.c), so ours is left out where RocksDB has just told where
 * the value is. On the RAM tier it tells that once (known.h), and from then on the hash is ours. The header tells in
 * either case that the value is whole and the one that was asked for. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>

struct kept {
    struct tier *tier;
    int segments, cursors, buffers;
    struct segment *segment[ANSWER_PIECES];
    struct rocks_cursor *cursor[ANSWER_PIECES]; /* of the segment last pinned: the last one */
    void *buffer[ANSWER_PIECES];
    struct rocks_cursor *current;
    struct value_codec_state *codec;
};

static void kept_release(void *object)
{
    struct kept *k = object;
    while (k->cursors)
        rocks_cursor_close(k->cursor[--k->cursors]);
    while (k->segments)
        segment_unpin(k->segment[--k->segments]);
    while (k->buffers)
        pool_buffer_put(&k->tier->common->pool, k->buffer[--k->buffers]);
    if (k->codec)
        pool_codec_put(&k->tier->common->pool, k->codec);
    free(k);
}

/* Cursors and codecs that are needed no more while the answer lasts. */
static void kept_trim(struct kept *k)
{
    if (k->tier->name == TIER_RAM)
        while (k->cursors)
            rocks_cursor_close(k->cursor[--k->cursors]);
    if (k->codec)
        pool_codec_put(&k->tier->common->pool, k->codec);
    k->codec = NULL;
}

static struct segment *pin(struct kept *k, uint32_t number)
{
    if (k->segments && k->segment[k->segments - 1]->number == number)
        return k->segment[k->segments - 1];
    struct segment *s = segment_pin(&k->tier->segments, number);
    k->current = NULL; /* it may not see a segment that was stored after it was opened */
    if (s)
        k->segment[k->segments++] = s;
    return s;
}

static int ask_rocks(struct kept *k, const struct segment *s, uint32_t place, int values, const void **bytes, size_t *n)
{
    if (!k->current) {
        k->current = rocks_cursor_open(k->tier->rocks, s->number, values);
        if (!k->current)
            return -ENOMEM;
        k->cursor[k->cursors++] = k->current;
    }
    return rocks_cursor_get(k->current, place, bytes, n);
}

/* `hashed`: RocksDB has verified the bytes in this very call. */
static int stored_bytes(struct kept *k, struct segment *s, uint32_t place, int values, const void **bytes, size_t *n,
                        bool *hashed)
{
    *hashed = false;
    if (s->staging) {
        const struct place *p = &s->staging->place[place];
        *bytes = s->staging->bytes + p->at;
        *n = p->length;
        return 0;
    }
    bool ram = k->tier->name == TIER_RAM;
    if (ram && known_find(s, place, bytes, n))
        return 0;
    int error = ask_rocks(k, s, place, values, bytes, n);
    if (!error && ram)
        known_add(s, place, *bytes, *n);
    *hashed = ram;
    return error;
}

static const void *open_value(struct kept *k, const void *bytes, size_t n)
{
    if (value_codec_of(bytes) == VALUE_RAW)
        return value_open(NULL, bytes, n, NULL);
    if (!k->codec && !(k->codec = pool_codec_get(&k->tier->common->pool)))
        return NULL;
    void *buffer = pool_buffer_get(&k->tier->common->pool);
    if (!buffer)
        return NULL;
    k->buffer[k->buffers++] = buffer;
    return value_open(k->codec, bytes, n, buffer);
}

/* A value that does not verify is held no more; nor is one whose disk fails, which also takes nothing new then. */
static void drop_bad(struct tier *t, uint32_t file, uint64_t value, uint64_t part, uint64_t entry, int error)
{
    if (error == -ENOMEM || !tier_drop_part(t, part, entry))
        return;
    atomic_fetch_add(&t->bad_values, 1);
    log_limited(LOG_LEVEL_WARNING, 5, "%s tier: value %llu of file %u is damaged: read afresh", tier_names[t->name],
                (unsigned long long)value, file);
    if (error == -EIO)
        tier_close_admission(t, error);
}

static int get_value(struct kept *k, uint32_t file, uint64_t value, int values, const char **raw)
{
    struct tier *t = k->tier;
    const struct catalog *c = t->common->catalog;
    uint64_t part = geometry_part_at(t->common->geometry, file, value * VALUE_BYTES);
    uint64_t entry = map_get(&t->common->map, part);
    if (!entry_held(entry) || entry_tier(entry) != t->name)
        return -ENOENT;
    struct segment *s = pin(k, entry_segment(entry));
    if (!s)
        return -EAGAIN; /* moved since */
    uint32_t place = entry_place(entry) + (part_values(c, file) > 1 ? (uint32_t)value : 0);
    const void *bytes;
    size_t n;
    bool hashed;
    int error = stored_bytes(k, s, place, values, &bytes, &n, &hashed);
    uint64_t seed = value_seed(catalog_file_seed(c, file), value);
    if (!error)
        error = (hashed ? value_check_header : value_check)(bytes, n, seed, value_raw(c, file, value));
    if (!error && !(*raw = open_value(k, bytes, n)))
        error = -EBADMSG;
    if (error)
        drop_bad(t, file, value, part, entry, error);
    return error ? -ENOENT : 0;
}

static int get_values(struct kept *k, const struct span *span, struct answer *answer)
{
    uint64_t offset = span->offset, end = offset + span->length;
    while (offset < end) {
        uint64_t value = offset / VALUE_BYTES, next = (value + 1) * VALUE_BYTES;
        const char *raw;
        int values = (int)((end - offset + VALUE_BYTES - 1) / VALUE_BYTES), error;
        do
            error = get_value(k, span->file, value, values, &raw);
        while (error == -EAGAIN);
        if (error)
            return error;
        answer_add(answer, raw + offset % VALUE_BYTES, (next < end ? next : end) - offset);
        offset = next;
    }
    return 0;
}

int tier_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    struct tier *t = (struct tier *)layer;
    const struct common *common = t->common;
    uint64_t entry = map_get(&common->map, geometry_part_at(common->geometry, span->file, span->offset));
    if (!entry_held(entry) || entry_tier(entry) != t->name || !span->length)
        return -ENOENT;
    struct kept *k = calloc(1, sizeof *k);
    if (!k)
        return -ENOENT;
    k->tier = t;
    int error = get_values(k, span, answer);
    if (error) {
        answer->pieces = 0;
        kept_release(k);
        return error;
    }
    kept_trim(k);
    answer_pin(answer, kept_release, k);
    return 0;
}
