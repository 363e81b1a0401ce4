/* Values of a mapped file are used in place. Of other files, as much as is wanted is read in one go: all values of the
 * span that are adjacent in the file; of a value in blocks only the touched blocks. The hash is most of the cost of a
 * read from memory, so it is computed once, over the used bytes. With verify_once, it is not computed for values that
 * are in a staging, which this process put there, nor for values that a read of this process has verified as a
 * whole. */
#include "fs/store/tier-read.h"

#include "fs/base/log.h"
#include "fs/store/unpack.h"

enum { GAP = 4096 }; /* maximum gap between two values that are read together */

struct span_read {
    struct stock *stock;
    const struct span *span;
    uint64_t file_seed;
    struct answer *answer;
    struct values_out *out; /* NULL: raw bytes are wanted, not stored values */
    struct unpacking unpacking;
    struct segment *segment; /* the last one pinned; the fields below are about it */
    struct {
        const char *bytes;
        uint64_t from, to;
    } window; /* the part of its file that was read last */
};

/* A value of the span: its wanted bytes, its place, */
struct wanted_value {
    uint64_t value, seed;
    struct value_part bytes;
    uint64_t part, entry;
    uint32_t place;
    /* its stored bytes from the first needed one on, and the length of all of them */
    const char *stored;
    size_t n;
};

/* False: it is not cached here. */
static bool find_value(const struct span_read *r, uint64_t offset, struct wanted_value *w)
{
    const struct map *map = r->stock->map;
    const struct span *span = r->span;
    uint64_t value = offset / VALUE_BYTES, begin = value * VALUE_BYTES, to = span->offset + span->length - begin;
    w->value = value;
    w->part = map_part(map, span->file, value);
    w->entry = map_get(map, w->part);
    if (!entry_held(w->entry) || entry_tier(w->entry) != r->stock->name)
        return false;
    w->place = entry_place(w->entry) + (file_in_blocks(map->catalog, span->file) ? 0 : (uint32_t)value);
    w->seed = value_seed(r->file_seed, value);
    w->bytes = (struct value_part){.raw = value_raw(map->catalog, span->file, value),
                                   .from = (uint32_t)(offset - begin),
                                   .to = to < VALUE_BYTES ? (uint32_t)to : VALUE_BYTES};
    return true;
}

/* The range of stored bytes that is needed. */
static void needed_bytes(const struct span_read *r, const struct wanted_value *w, uint32_t *from, uint32_t *to)
{
    *from = 0;
    *to = (uint32_t)w->n;
    if (value_is_in_blocks(w->n, w->bytes.raw) && !(r->out && value_part_is_whole(&w->bytes)))
        value_part_stored(&w->bytes, from, to);
}

static bool pin_segment(struct span_read *r, uint32_t number)
{
    if (r->segment && r->segment->number == number)
        return true;
    struct segment *s = stock_pin(r->stock, number);
    if (!s)
        return false;
    answer_pin(r->answer, stock_unpin, s);
    r->segment = s;
    r->window.bytes = NULL;
    return true;
}

/* How far to read the file from `from`, so that following values are served as well. */
static uint64_t reach_of(const struct span_read *r, const struct wanted_value *w, uint64_t from, uint64_t to)
{
    uint64_t end = r->span->offset + r->span->length, offset = (w->value + 1) * VALUE_BYTES;
    for (; offset < end; offset += VALUE_BYTES) {
        struct wanted_value next;
        uint64_t at;
        uint32_t first, last;
        if (!find_value(r, offset, &next) || entry_segment(next.entry) != r->segment->number ||
            !segment_file_find(r->segment->file, next.place, &at, &next.n))
            break;
        needed_bytes(r, &next, &first, &last);
        if (at + first < to || at + first - to > GAP ||
            at + last - from > pool_bytes[POOL_SPAN] - 2 * SEGMENT_FILE_ALIGN)
            break;
        to = at + last;
    }
    return to;
}

static int read_window(struct span_read *r, uint64_t from, uint64_t to)
{
    bool one = to - from <= pool_bytes[POOL_VALUE] - 2 * SEGMENT_FILE_ALIGN;
    struct buffer *buffer = pool_buffer_get(r->stock->pool, one ? POOL_VALUE : POOL_SPAN);
    if (!buffer)
        return -ENOMEM;
    int error = 0;
    r->window.bytes = segment_file_read(r->segment->file, from, to, buffer->bytes, &error);
    if (error) {
        pool_buffer_put(buffer);
        return error;
    }
    answer_pin(r->answer, pool_buffer_put, buffer);
    r->window.from = from;
    r->window.to = to;
    return 0;
}

/* If the long read fails, only this value is read: a bad sector must cost one value, not all. */
static int reach_window(struct span_read *r, const struct wanted_value *w, uint64_t from, uint64_t to)
{
    if (r->window.bytes && from >= r->window.from && to <= r->window.to)
        return 0;
    uint64_t far = reach_of(r, w, from, to);
    int error = read_window(r, from, far);
    if (error && !stock_may_recover(error) && far > to)
        error = read_window(r, from, to);
    return error;
}

static int find_stored(struct span_read *r, struct wanted_value *w)
{
    const struct segment *s = r->segment;
    uint32_t first, last;
    uint64_t at;
    int error = 0;
    if (s->staging) {
        const struct value_place *p = &s->staging->place[w->place];
        w->stored = s->staging->bytes + p->at;
        w->n = p->length;
    } else if (!segment_file_find(s->file, w->place, &at, &w->n)) {
        return -EBADMSG;
    } else {
        w->stored = segment_file_bytes(s->file, at);
    }
    w->bytes.verified = r->stock->verify_once && !(r->out && r->out->verify) &&
                        (s->staging || segment_file_verified(s->file, w->place));
    needed_bytes(r, w, &first, &last);
    if (w->stored)
        w->stored += first;
    else if (!(error = reach_window(r, w, at + first, at + last)))
        w->stored = r->window.bytes + (at + first - r->window.from);
    return error;
}

static int hand_out(struct span_read *r, const struct wanted_value *w)
{
    if (!r->out)
        return unpack_value(&r->unpacking, &w->bytes, w->seed, w->stored, w->n);
    struct iovec piece[VALUE_BYTES / VALUE_BLOCK];
    uint32_t from, to;
    needed_bytes(r, w, &from, &to);
    int error = from                ? value_part_open(&w->bytes, w->stored, w->seed, piece)
                : w->bytes.verified ? value_check_header(w->stored, w->n, w->seed, w->bytes.raw)
                                    : value_check(w->stored, w->n, w->seed, w->bytes.raw);
    if (error < 0)
        return error;
    r->out->put(r->out->user, r->out->done++, w->stored, to - from, from);
    return 0;
}

/* All of its stored bytes were used, and none was found wrong. */
static void note_verified(const struct span_read *r, const struct wanted_value *w)
{
    bool whole = !value_is_in_blocks(w->n, w->bytes.raw) || value_part_is_whole(&w->bytes);
    if (r->stock->verify_once && whole && !w->bytes.verified && r->segment->file)
        segment_file_set_verified(r->segment->file, w->place);
}

/* Drop a value that fails verification or cannot be read. If the disk fails, its file is not removed: stock_close comes
 * before anything counts as dead. */
static void drop_bad(const struct span_read *r, const struct wanted_value *w, int error)
{
    struct stock *k = r->stock;
    if (stock_may_recover(error))
        return;
    if (!rocks_is_damage(error))
        stock_close(k, error);
    if (!stock_drop_part(k, w->part, w->entry))
        return;
    atomic_fetch_add(&k->bad_values, 1);
    log_limited(LOG_LEVEL_WARNING, 5, "%s tier: value %llu of file %u is %s: it is fetched again", tier_names[k->name],
                (unsigned long long)w->value, r->span->file, rocks_is_damage(error) ? "damaged" : "unreadable");
}

/* Look again if the value moved. If the map still leads to a segment that is gone, the part was missing in the
 * segment's index when the others moved: the index was damaged in memory, with a matching checksum. */
static bool find_and_pin(struct span_read *r, uint64_t offset, struct wanted_value *w)
{
    while (find_value(r, offset, w)) {
        if (pin_segment(r, entry_segment(w->entry)))
            return true;
        if (map_get(r->stock->map, w->part) == w->entry)
            drop_bad(r, w, -EBADMSG);
    }
    return false;
}

static int read_value(struct span_read *r, uint64_t offset)
{
    struct wanted_value w;
    if (!find_and_pin(r, offset, &w))
        return -ENOENT;
    int error = find_stored(r, &w);
    if (!error)
        error = hand_out(r, &w);
    if (error)
        drop_bad(r, &w, error);
    else
        note_verified(r, &w);
    return error ? -ENOENT : 0;
}

static int read_values(struct span_read *r)
{
    const struct span *span = r->span;
    int error = 0;
    r->unpacking = (struct unpacking){.answer = r->answer, .pool = r->stock->pool};
    r->file_seed = catalog_file_seed(r->stock->map->catalog, span->file);
    for (uint64_t offset = span->offset; offset < span->offset + span->length && !error;) {
        error = read_value(r, offset);
        offset = (offset / VALUE_BYTES + 1) * VALUE_BYTES;
    }
    unpack_end(&r->unpacking);
    return error;
}

int tier_read(struct stock *k, const struct span *span, struct answer *answer)
{
    struct span_read r = {.stock = k, .span = span, .answer = answer};
    int error = read_values(&r);
    if (error)
        answer_release(answer);
    return error;
}

int tier_read_stored(struct stock *k, const struct span *span, struct values_out *out)
{
    struct answer pins;
    struct span_read r = {.stock = k, .span = span, .answer = &pins, .out = out};
    uint32_t before = out->done;
    answer_init(&pins);
    int error = read_values(&r);
    answer_release(&pins);
    return out->done > before ? 0 : error;
}

static void count_bytes(void *bytes, uint32_t i, const void *value, uint32_t length, bool cut)
{
    (void)i, (void)value, (void)cut;
    *(uint64_t *)bytes += length;
}

uint64_t tier_scrub(struct stock *k, const struct span *value)
{
    uint64_t bytes = 0;
    struct answer pins;
    struct values_out out = {.put = count_bytes, .user = &bytes, .verify = true};
    struct span_read r = {.stock = k, .span = value, .answer = &pins, .out = &out};
    answer_init(&pins);
    read_values(&r);
    answer_release(&pins);
    return bytes;
}
