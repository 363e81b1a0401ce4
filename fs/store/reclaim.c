/* Reclaim: when a quarter of a segment is dead, its live values move to a new segment and its file is dropped. So do
 * those of small segments, when there are many: each costs a file, and comes of a moment in which nothing else was
 * read.
 *
 * The tier's thread copies from file to file; no staging is taken, so fillers go on. The new segment is ingested before
 * the map is turned to it, part by part: a reader finds a part at the old place or at the new one, and a part that is
 * dropped meanwhile stays dropped. The new segment names those that it replaces: after a crash in between both files
 * are there, and restore.c drops the old one, with the dead values that it would otherwise take for live. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORN_PART = 4,   /* worth moving when one of so many bytes is dead */
    CHOSEN = 64,     /* at most so many segments become one at once */
    SMALL_PART = 16, /* a segment is small when it has at most this part of what one can have */
    MANY_SMALL = 32,
    PART_VALUES = PIECE_BYTES / VALUE_BYTES,
    BUFFER = PART_VALUES * (VALUE_MOST + 128) + 2 * KNOWN_ALIGN, /* a little more lies between values */
};

struct move {
    uint64_t part, from, to;
};

struct mover {
    struct tier *tier;
    char *buffer; /* of BUFFER bytes, aligned: the values of a part that are not mapped */
    struct tier_writer writer;
    uint32_t place;
    struct move *move;
    uint32_t moves, room;
};

struct live_part {
    uint32_t file, place;
    uint64_t value, part, entry;
    uint32_t values;
    const struct index_value *stored;
};

typedef int visit_part(void *user, const struct live_part *part);

/* Each part of the segment that the map leads to. */
static int visit_live(struct tier *t, const struct index *index, uint32_t segment, visit_part *visit, void *user)
{
    const struct common *common = t->common;
    const struct index_value *stored = index->value;
    for (uint32_t i = 0; i < index->runs; stored += index->run[i++].count) {
        const struct index_run *run = &index->run[i];
        uint32_t step = run->file == NO_FILE ? run->count : part_values(common->catalog, run->file);
        for (uint32_t at = 0; run->file != NO_FILE && at < run->count; at += step) {
            struct live_part p = {run->file, run->place + at, (uint64_t)run->value + at, 0, 0, step, stored + at};
            p.part = cut_at(common->parts, p.file, p.value * VALUE_BYTES);
            p.entry = entry_make(t->name, segment, p.place);
            int error = map_get(&common->map, p.part) == p.entry ? visit(user, &p) : 0;
            if (error)
                return error;
        }
    }
    return 0;
}

struct live_count {
    uint64_t bytes;
    uint32_t values;
};

static int count_part(void *user, const struct live_part *p)
{
    struct live_count *live = user;
    live->values += p->values;
    for (uint32_t i = 0; i < p->values; i++)
        live->bytes += p->stored[i].length + VALUE_COST;
    return 0;
}

int tier_stored_value(struct tier *t, const struct segment *s, uint32_t place, struct rocks_cursor **cursor,
                      const void **bytes, size_t *n)
{
    uint64_t at;
    if (known_find(s->known, place, &at, n) && (*bytes = known_bytes(s->known, at)))
        return 0;
    if (!*cursor && !(*cursor = rocks_cursor_open(t->rocks, s->number, 2)))
        return -ENOMEM;
    return rocks_cursor_get(*cursor, place, bytes, n);
}

/* A segment whose index cannot be read any more is of no use: its live parts are looked for in the whole map. */
static void forget_parts(struct tier *t, uint32_t segment)
{
    struct map *map = &t->common->map;
    for (uint64_t part = 0; part < map->parts; part++) {
        uint64_t entry = map_get(map, part);
        if (entry_held(entry) && entry_tier(entry) == t->name && entry_segment(entry) == segment &&
            map_change(map, part, entry, 0))
            atomic_fetch_sub(&t->parts, 1);
    }
}

static void count_dead(struct tier *t, struct segment *s, struct match **match)
{
    struct index index = {.runs = 0};
    struct live_count live = {0, 0};
    int error = tier_read_index(t, s, &index, match);
    if (tier_will_pass(error)) {
        atomic_store(&s->worn, true);
        return;
    }
    if (error == -EIO && s->known)
        return; /* its values may be readable all the same: it stays as it is */
    if (error) {
        log_warning("%s tier: the index of segment %u is damaged: the segment is dropped", tier_names[t->name],
                    s->number);
        forget_parts(t, s->number);
    } else {
        visit_live(t, &index, s->number, count_part, &live);
    }
    index_fini(&index);
    pthread_mutex_lock(&t->lock);
    t->dead -= s->dead;
    s->live = live.bytes;
    s->live_values = live.values;
    s->dead = !live.values ? s->held : s->held > live.bytes + SEGMENT_COST ? s->held - live.bytes - SEGMENT_COST : 0;
    t->dead += s->dead;
    pthread_mutex_unlock(&t->lock);
}

static int note_move(struct mover *m, const struct live_part *p)
{
    if (m->moves == m->room) {
        uint32_t room = m->room ? 2 * m->room : 256;
        struct move *grown = realloc(m->move, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        m->move = grown;
        m->room = room;
    }
    m->move[m->moves++] = (struct move){p->part, p->entry, entry_make(m->tier->name, m->writer.number, m->place)};
    return 0;
}

struct part_bytes {
    struct rocks_cursor *cursor; /* NULL: none was needed */
    const void *bytes[PART_VALUES];
    size_t n[PART_VALUES];
};

/* -ENOENT: RocksDB is to be asked. */
static int read_known(struct mover *m, const struct segment *s, const struct live_part *p, struct part_bytes *b)
{
    uint64_t at[PART_VALUES], from = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < p->values; i++) {
        if (!known_find(s->known, p->place + i, &at[i], &b->n[i]))
            return -ENOENT;
        from = at[i] < from ? at[i] : from;
        to = at[i] + b->n[i] > to ? at[i] + b->n[i] : to;
    }
    const char *bytes = known_bytes(s->known, from);
    int error = 0;
    if (!bytes && to - from > BUFFER - 2 * KNOWN_ALIGN)
        return -ENOENT;
    if (!bytes && !(bytes = known_read(s->known, from, to, m->buffer, &error)))
        return error;
    for (uint32_t i = 0; i < p->values; i++)
        b->bytes[i] = bytes + (at[i] - from);
    return 0;
}

static int ask_rocks(struct mover *m, const struct segment *s, const struct live_part *p, struct part_bytes *b)
{
    int error = 0;
    for (uint32_t i = 0; i < p->values && !error; i++)
        error = tier_stored_value(m->tier, s, p->place + i, &b->cursor, &b->bytes[i], &b->n[i]);
    return error;
}

/* All of the part's values, checked, before the first is written: a part moves whole or not at all. */
static int read_part(struct mover *m, const struct live_part *p, struct part_bytes *b)
{
    const struct catalog *c = m->tier->common->catalog;
    const struct segment *s = segments_at(&m->tier->segments, entry_segment(p->entry));
    uint64_t seed = catalog_file_seed(c, p->file);
    int error = read_known(m, s, p, b);
    if (error == -ENOENT)
        error = ask_rocks(m, s, p, b);
    for (uint32_t i = 0; i < p->values && !error; i++) {
        uint64_t value = p->value + i;
        error = value_check(b->bytes[i], b->n[i], value_seed(seed, value), value_raw(c, p->file, value));
    }
    return error;
}

static int write_part(struct mover *m, const struct live_part *p, const struct part_bytes *b)
{
    int error = note_move(m, p);
    for (uint32_t i = 0; i < p->values && !error; i++, m->place++)
        error =
            tier_writer_put(&m->writer, m->place, p->file, (uint32_t)(p->value + i), b->bytes[i], (uint32_t)b->n[i]);
    return error;
}

static int move_part(void *user, const struct live_part *p)
{
    struct mover *m = user;
    struct part_bytes b = {.cursor = NULL};
    int error = read_part(m, p, &b);
    if (!error) {
        error = write_part(m, p, &b);
    } else if (!tier_will_pass(error)) {
        if (tier_drop_part(m->tier, p->part, p->entry))
            atomic_fetch_add(&m->tier->bad_values, 1);
        error = 0;
    }
    rocks_cursor_close(b.cursor);
    return error;
}

/* Also what the replaced one replaced, where its file is still there because a reader holds it. */
static int note_replaced(struct mover *m, uint32_t segment, const struct index *index)
{
    struct index *replacing = &m->writer.index;
    int error = index_replace(replacing, segment);
    for (uint32_t i = 0; i < index->replaced && !error; i++)
        if (rocks_has(m->tier->rocks, index->replaces[i]))
            error = index_replace(replacing, index->replaces[i]);
    return error;
}

static int move_segment(struct mover *m, struct segment *s, struct match **match)
{
    struct index index;
    int error = tier_read_index(m->tier, s, &index, match);
    if (error)
        return error;
    error = visit_live(m->tier, &index, s->number, move_part, m);
    if (!error)
        error = note_replaced(m, s->number, &index);
    index_fini(&index);
    return error;
}

static int turn_map(struct mover *m, uint64_t bytes, struct known *known)
{
    struct tier *t = m->tier;
    pthread_mutex_lock(&t->lock);
    struct segment *s = tier_add_stored(t, m->writer.number, bytes, known);
    pthread_mutex_unlock(&t->lock);
    if (!s)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->moves; i++)
        if (!map_change(&t->common->map, m->move[i].part, m->move[i].from, m->move[i].to))
            atomic_store(&s->worn, true); /* dropped meanwhile: counted in the next round */
    pthread_mutex_lock(&t->lock);
    t->worn = t->worn || atomic_load(&s->worn);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static bool is_small(const struct tier *t, const struct segment *s)
{
    return s->held <= t->segment_bytes / SMALL_PART;
}

bool tier_wants_merge(const struct tier *t)
{
    int small = 0;
    for (const struct segment *s = t->stored; s && small < MANY_SMALL; s = s->next_stored)
        small += is_small(t, s);
    return small == MANY_SMALL;
}

static bool is_worn(const struct segment *s)
{
    return s->dead >= s->held / WORN_PART;
}

/* Worn segments, or small ones, whose live values fill at most one new one. */
static uint32_t choose(const struct tier *t, struct segment **chosen)
{
    struct live_count live = {0, 0};
    bool merge = tier_wants_merge(t);
    uint32_t count = 0;
    for (struct segment *s = t->stored; s && count < CHOSEN; s = s->next_stored) {
        if (!is_worn(s) && !(merge && s->live && is_small(t, s)))
            continue;
        if (count && (live.bytes + s->live > t->segment_bytes || live.values + s->live_values > SEGMENT_PLACES))
            continue;
        live.bytes += s->live;
        live.values += s->live_values;
        chosen[count++] = s;
    }
    if (count == 1 && !is_worn(chosen[0]))
        return 0;
    return count;
}

static int move_segments(struct tier *t, struct segment **chosen, uint32_t count, struct match **match)
{
    struct mover m = {.tier = t,
                      .buffer = aligned_alloc(KNOWN_ALIGN, (BUFFER + KNOWN_ALIGN - 1) / KNOWN_ALIGN * KNOWN_ALIGN)};
    struct known *known;
    uint64_t bytes = 0;
    pthread_mutex_lock(&t->lock);
    uint32_t number = t->next_segment++;
    pthread_mutex_unlock(&t->lock);
    int error = tier_writer_begin(t, number, &m.writer);
    if (!m.buffer)
        error = -ENOMEM;
    for (uint32_t i = 0; i < count && !error; i++)
        error = move_segment(&m, chosen[i], match);
    if (!error && m.moves)
        error = tier_writer_end(&m.writer, &bytes, &known);
    if (!error && m.moves)
        error = turn_map(&m, bytes, known);
    tier_writer_fini(&m.writer);
    free(m.move);
    free(m.buffer);
    return error;
}

static void retire_dead(struct tier *t)
{
    for (struct segment *s = t->stored, *next; s; s = next) {
        next = s->next_stored;
        if (s->dead == s->held)
            tier_retire(t, s);
    }
}

int tier_reclaim_round(struct tier *t)
{
    struct segment *chosen[CHOSEN];
    struct match *match = NULL;
    bool merge = tier_wants_merge(t);
    uint32_t count;
    int error = 0;
    for (struct segment *s = t->stored; s; s = s->next_stored)
        if (atomic_exchange(&s->worn, false) || (merge && !s->live && is_small(t, s)))
            count_dead(t, s, &match);
    retire_dead(t);
    while (!error && (count = choose(t, chosen))) {
        error = move_segments(t, chosen, count, &match);
        for (uint32_t i = 0; i < count && !error; i++)
            tier_retire(t, chosen[i]);
    }
    match_destroy(match);
    if (error && !tier_will_pass(error))
        tier_close_admission(t, error);
    return tier_will_pass(error) ? error : 0;
}
