/* Reading from a tier: the bytes of a span, checked, where they lie. Whatever the answer points into goes with it, as
 * its pins: segments, buffers of what was read or decompressed, RocksDB's cursors.
 *
 * A value's bytes are found without RocksDB (known.h). Those of a mapped file are at hand; of others as much as is
 * wanted is read at once: all values of the span that follow one another in the file, and of a value in blocks no more
 * than the blocks that are touched. One hash over what is used is most of what a read from memory costs, and is made
 * once. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>

enum { GAP = 4096 }; /* so many bytes between two values are read with them */

struct reading {
    struct tier *tier;
    const struct span *span;
    struct answer *answer;
    struct value_codec_state *codec;
    struct segment *segment; /* pinned last; the rest is about it */
    struct rocks_cursor *cursor;
    struct {
        const char *bytes;
        uint64_t from, to;
    } window;   /* of its file, read last */
    bool whole; /* values are wanted as they are stored */
};

/* Some bytes of one value. */
struct wanted {
    uint64_t value, seed;
    struct value_part part;
    bool whole; /* as it is stored, header included */
};

/* Where the value is. */
struct found {
    uint64_t part, entry;
    uint32_t place;
};

/* Its stored bytes, from the first one that is needed on. */
struct stored {
    const char *bytes;
    size_t n; /* of the whole value */
};

static struct wanted wanted_at(const struct reading *r, uint64_t offset)
{
    const struct catalog *c = r->tier->common->catalog;
    const struct span *span = r->span;
    uint64_t value = offset / VALUE_BYTES, begin = value * VALUE_BYTES;
    uint64_t to = span->offset + span->length - begin;
    return (struct wanted){
        .value = value,
        .seed = value_seed(catalog_file_seed(c, span->file), value),
        .part = {value_raw(c, span->file, value), (uint32_t)(offset - begin),
                 to < VALUE_BYTES ? (uint32_t)to : VALUE_BYTES},
        .whole = r->whole,
    };
}

static bool find(const struct reading *r, uint64_t value, struct found *f)
{
    const struct common *common = r->tier->common;
    uint32_t file = r->span->file;
    f->part = cut_at(common->parts, file, value * VALUE_BYTES);
    f->entry = map_get(&common->map, f->part);
    f->place = entry_place(f->entry) + (part_values(common->catalog, file) > 1 ? (uint32_t)value : 0);
    return entry_held(f->entry) && entry_tier(f->entry) == r->tier->name;
}

static void needed(const struct wanted *w, size_t n, uint32_t *from, uint32_t *to)
{
    *from = 0;
    *to = (uint32_t)n;
    if (!w->whole && value_is_in_blocks(n, w->part.raw))
        value_part_stored(&w->part, from, to);
}

static void release_segment(void *segment)
{
    segment_unpin(segment);
}

static void release_buffer(void *buffer)
{
    pool_buffer_put(buffer);
}

static void release_cursor(void *cursor)
{
    rocks_cursor_close(cursor);
}

static bool pin(struct reading *r, uint32_t number)
{
    if (r->segment && r->segment->number == number)
        return true;
    struct segment *s = segment_pin(&r->tier->segments, number);
    if (!s)
        return false;
    answer_pin(r->answer, release_segment, s);
    r->segment = s;
    r->cursor = NULL; /* it may not see a segment that was stored after it was opened */
    r->window.bytes = NULL;
    return true;
}

/* How far a read that begins at `from` in the file goes, to serve the values behind this one as well. */
static uint64_t reach(const struct reading *r, const struct wanted *w, uint64_t from, uint64_t to)
{
    uint64_t end = r->span->offset + r->span->length, offset = (w->value + 1) * VALUE_BYTES;
    for (; offset < end; offset += VALUE_BYTES) {
        struct wanted next = wanted_at(r, offset);
        struct found f;
        uint64_t at;
        size_t n;
        uint32_t first, last;
        if (!find(r, next.value, &f) || entry_segment(f.entry) != r->segment->number ||
            !known_find(r->segment->known, f.place, &at, &n))
            break;
        needed(&next, n, &first, &last);
        if (at + first < to || at + first - to > GAP || at + last - from > pool_bytes[POOL_SPAN] - 2 * KNOWN_ALIGN)
            break;
        to = at + last;
    }
    return to;
}

static int read_window(struct reading *r, uint64_t from, uint64_t to)
{
    bool one = to - from <= pool_bytes[POOL_VALUE] - 2 * KNOWN_ALIGN;
    struct buffer *buffer = pool_buffer_get(&r->tier->common->pool, one ? POOL_VALUE : POOL_SPAN);
    if (!buffer)
        return -ENOMEM;
    int error = 0;
    r->window.bytes = known_read(r->segment->known, from, to, buffer->bytes, &error);
    if (error) {
        pool_buffer_put(buffer);
        return error;
    }
    answer_pin(r->answer, release_buffer, buffer);
    r->window.from = from;
    r->window.to = to;
    return 0;
}

/* What one bad sector takes with it is a value and not all that were to be read at once. */
static int read_stored(struct reading *r, const struct wanted *w, uint64_t at, struct stored *s)
{
    uint32_t first, last;
    needed(w, s->n, &first, &last);
    uint64_t from = at + first, to = at + last;
    if (!r->window.bytes || from < r->window.from || to > r->window.to) {
        uint64_t far = reach(r, w, from, to);
        int error = read_window(r, from, far);
        if (error == -EIO && far > to)
            error = read_window(r, from, to);
        if (error)
            return error;
    }
    s->bytes = r->window.bytes + (from - r->window.from);
    return 0;
}

static int ask_rocks(struct reading *r, const struct wanted *w, uint32_t place, struct stored *s)
{
    uint64_t left = r->span->offset + r->span->length - w->value * VALUE_BYTES;
    const void *bytes;
    uint32_t first, last;
    if (!r->cursor) {
        r->cursor = rocks_cursor_open(r->tier->rocks, r->segment->number, left > VALUE_BYTES ? 2 : 1);
        if (!r->cursor)
            return -ENOMEM;
        answer_pin(r->answer, release_cursor, r->cursor);
    }
    int error = rocks_cursor_get(r->cursor, place, &bytes, &s->n);
    if (error)
        return error;
    needed(w, s->n, &first, &last);
    s->bytes = (const char *)bytes + first;
    return 0;
}

static int stored_bytes(struct reading *r, const struct wanted *w, uint32_t place, struct stored *s)
{
    const struct segment *segment = r->segment;
    const char *bytes;
    uint64_t at;
    uint32_t first, last;
    if (segment->staging) {
        const struct place *p = &segment->staging->place[place];
        bytes = segment->staging->bytes + p->at;
        s->n = p->length;
    } else if (!known_find(segment->known, place, &at, &s->n)) {
        return ask_rocks(r, w, place, s);
    } else if (!(bytes = known_bytes(segment->known, at))) {
        return read_stored(r, w, at, s);
    }
    needed(w, s->n, &first, &last);
    s->bytes = bytes + first;
    return 0;
}

static int unpack(struct reading *r, const struct stored *s, const char **raw)
{
    struct pool *pool = &r->tier->common->pool;
    struct buffer *buffer = NULL;
    if (value_codec_of(s->bytes) != VALUE_RAW) {
        if (!r->codec && !(r->codec = pool_codec_get(pool)))
            return -ENOMEM;
        buffer = pool_buffer_get(pool, POOL_VALUE);
        if (!buffer)
            return -ENOMEM;
        answer_pin(r->answer, release_buffer, buffer);
    }
    *raw = value_open(r->codec, s->bytes, s->n, buffer ? buffer->bytes : NULL);
    return *raw ? 0 : -EBADMSG;
}

static int add_to_answer(struct reading *r, const struct wanted *w, const struct stored *s)
{
    struct answer *answer = r->answer;
    const struct value_part *part = &w->part;
    if (value_is_in_blocks(s->n, part->raw)) {
        int pieces = value_part_open(part, s->bytes, w->seed, answer->piece + answer->pieces);
        answer->pieces += pieces > 0 ? pieces : 0;
        return pieces < 0 ? pieces : 0;
    }
    int error = value_check(s->bytes, s->n, w->seed, part->raw);
    const char *raw;
    if (!error)
        error = unpack(r, s, &raw);
    if (!error)
        answer_add(answer, raw + part->from, part->to - part->from);
    return error;
}

/* A value that does not verify is held no more; nor is one whose disk fails, which also takes nothing new then. */
static void drop_bad(struct tier *t, uint32_t file, uint64_t value, const struct found *f, int error)
{
    if (tier_will_pass(error) || !tier_drop_part(t, f->part, f->entry))
        return;
    atomic_fetch_add(&t->bad_values, 1);
    log_limited(LOG_LEVEL_WARNING, 5, "%s tier: value %llu of file %u is %s: read afresh", tier_names[t->name],
                (unsigned long long)value, file, error == -EIO ? "unreadable" : "damaged");
    if (error == -EIO)
        tier_close_admission(t, error);
}

/* -ENOENT, or -EAGAIN: it was moved meanwhile. */
static int find_and_pin(struct reading *r, const struct wanted *w, struct found *f)
{
    if (!find(r, w->value, f))
        return -ENOENT;
    return pin(r, entry_segment(f->entry)) ? 0 : -EAGAIN;
}

/* -EAGAIN as above. */
static int get_value(struct reading *r, const struct wanted *w)
{
    struct found f;
    struct stored stored;
    int error = find_and_pin(r, w, &f);
    if (error)
        return error;
    error = stored_bytes(r, w, f.place, &stored);
    if (!error)
        error = add_to_answer(r, w, &stored);
    if (error)
        drop_bad(r->tier, r->span->file, w->value, &f, error);
    return error ? -ENOENT : 0;
}

static int get_values(struct reading *r)
{
    const struct span *span = r->span;
    uint64_t end = span->offset + span->length;
    for (uint64_t offset = span->offset; offset < end;) {
        struct wanted w = wanted_at(r, offset);
        int error;
        do
            error = get_value(r, &w);
        while (error == -EAGAIN);
        if (error)
            return error;
        offset = (w.value + 1) * VALUE_BYTES;
    }
    return 0;
}

int tier_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    struct tier *t = (struct tier *)layer;
    struct common *common = t->common;
    uint64_t entry = map_get(&common->map, cut_at(common->parts, span->file, span->offset));
    if (!entry_held(entry) || entry_tier(entry) != t->name || !span->length)
        return -ENOENT;
    struct reading r = {.tier = t, .span = span, .answer = answer};
    int error = get_values(&r);
    if (r.codec)
        pool_codec_put(&common->pool, r.codec);
    if (error)
        answer_release(answer);
    return error;
}

static int put_value(struct reading *r, const struct wanted *w, uint32_t i, tier_put put, void *user)
{
    struct found f;
    struct stored stored;
    int error = find_and_pin(r, w, &f);
    if (error)
        return error;
    error = stored_bytes(r, w, f.place, &stored);
    if (!error)
        error = value_check(stored.bytes, stored.n, w->seed, w->part.raw);
    if (!error)
        put(user, i, stored.bytes, (uint32_t)stored.n);
    else
        drop_bad(r->tier, r->span->file, w->value, &f, error);
    return error ? -ENOENT : 0;
}

int tier_stored(struct tier *t, uint32_t file, uint32_t value, uint32_t count, tier_put put, void *user)
{
    struct answer pins;
    uint64_t size = catalog_file(t->common->catalog, file).size, begin = (uint64_t)value * VALUE_BYTES;
    uint64_t length = size - begin < (uint64_t)count * VALUE_BYTES ? size - begin : (uint64_t)count * VALUE_BYTES;
    struct span span = {.file = file, .length = (uint32_t)length, .offset = begin};
    struct reading r = {.tier = t, .span = &span, .answer = &pins, .whole = true};
    answer_init(&pins);
    uint32_t done = 0;
    int error = 0;
    while (!error && done < count) {
        struct wanted w = wanted_at(&r, (uint64_t)(value + done) * VALUE_BYTES);
        error = put_value(&r, &w, done, put, user);
        done += !error;
        if (error == -EAGAIN)
            error = 0;
    }
    answer_release(&pins);
    return done ? (int)done : error;
}
