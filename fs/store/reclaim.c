/* The tier's thread copies values from file to file. It needs no staging, so filling continues.
 *
 *   1. The new segment's file is ingested.
 *   2. The map is changed part by part. A reader finds a part at its old or at its new place; a part that was dropped
 *      meanwhile stays dropped.
 *   3. The old segments are dropped.
 *
 * The new segment names those it replaces. After a crash between 1 and 3 all files exist; restore.c then drops the old
 * ones, whose dropped values would otherwise be taken for live. */
#include "fs/store/reclaim.h"

#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/store/contents.h"
#include "fs/store/writer.h"

#include <stdlib.h>

enum {
    WORN_PART = 4,    /* a segment is rewritten if one byte in 4 is dead */
    LEAST_PART = 256, /* one byte in 256, when room is needed */
    CHOSEN = 64,      /* maximum number of segments that are merged into one */
    SMALL_PART = 16,  /* a segment is small if it has at most this part of a full one */
    MANY_SMALL = 32,
    PART_VALUES = PIECE_BYTES / VALUE_BYTES,
    BETWEEN = 128, /* maximum gap between two values that are read together */
    BUFFER = (PART_VALUES * (VALUE_MOST + BETWEEN) / SEGMENT_FILE_ALIGN + 3) * SEGMENT_FILE_ALIGN,
};

struct move {
    uint64_t part, from, to;
};

struct part_mover {
    struct stock *stock;
    char *buffer; /* BUFFER bytes, aligned; for values that are not mapped */
    struct segment_writer writer;
    uint32_t place;
    struct move *move;
    uint32_t moves, room;
};

static struct contents_walk walk_of(const struct stock *k, const struct segment *s, const struct index *index)
{
    return (struct contents_walk){.map = k->map, .tier = k->name, .segment = s->number, .index = index};
}

/* The next part to which the map leads. */
static bool next_live(struct contents_walk *walk, struct stored_part *p)
{
    while (contents_next(walk, p))
        if (map_get(walk->map, p->part) == p->entry)
            return true;
    return false;
}

/* Without its index a segment is useless: the whole map is searched for its live parts. */
static void forget_parts(struct stock *k, uint32_t segment)
{
    for (uint64_t part = 0; part < k->map->parts->pieces; part++) {
        uint64_t entry = map_get(k->map, part);
        if (entry_held(entry) && entry_tier(entry) == k->name && entry_segment(entry) == segment &&
            map_change(k->map, part, entry, 0))
            atomic_fetch_sub(&k->parts, 1);
    }
}

static void count_live(const struct stock *k, struct segment *s, const struct index *index)
{
    struct contents_walk walk = walk_of(k, s, index);
    struct stored_part p;
    s->live = 0;
    s->live_values = 0;
    while (next_live(&walk, &p)) {
        s->live_values += p.values;
        for (uint32_t i = 0; i < p.values; i++)
            s->live += p.stored[i].length + VALUE_COST;
    }
}

static int count_dead(struct stock *k, struct segment *s, struct match **match)
{
    struct index index = {.runs = 0};
    int error = contents_read(s->file, k->map->catalog, match, &index);
    if (error && !rocks_is_damage(error)) {
        atomic_store(&s->worn, true); /* count it later */
        return error;
    }
    if (error) {
        log_warning("%s tier: the index of segment %u is damaged: the segment is dropped", tier_names[k->name],
                    s->number);
        forget_parts(k, s->number);
    }
    count_live(k, s, &index);
    index_fini(&index);
    uint64_t in_use = s->live_values ? s->live + SEGMENT_COST : 0;
    LOCK_SCOPE(&k->lock);
    k->dead -= s->dead;
    s->dead = s->held > in_use ? s->held - in_use : 0;
    k->dead += s->dead;
    return 0;
}

static int note_move(struct part_mover *m, const struct stored_part *p)
{
    if (array_reserve(m->move, m->room, m->moves + 1))
        return -ENOMEM;
    m->move[m->moves++] = (struct move){p->part, p->entry, entry_make(m->stock->name, m->writer.number, m->place)};
    return 0;
}

/* Find a part's values: contiguous in the file; `bytes` is the first. */
static int find_part(struct part_mover *m, const struct segment_file *file, const struct stored_part *p,
                     const char **bytes)
{
    const struct index_value *last = &p->stored[p->values - 1];
    uint64_t from = p->stored->at, to = (uint64_t)last->at + last->length;
    int error = 0;
    *bytes = segment_file_bytes(file, from);
    if (*bytes)
        return 0;
    if (to - from > BUFFER - 2 * SEGMENT_FILE_ALIGN)
        return -EBADMSG;
    *bytes = segment_file_read(file, from, to, m->buffer, &error);
    return error;
}

/* All values of the part are checked before the first is written: a part moves completely or not at all. */
static int check_part(const struct part_mover *m, const struct stored_part *p, const char *bytes)
{
    const struct catalog *c = m->stock->map->catalog;
    uint64_t seed = catalog_file_seed(c, p->file);
    int error = 0;
    for (uint32_t i = 0; i < p->values && !error; i++) {
        uint64_t value = (uint64_t)p->value + i;
        error = value_check(bytes + (p->stored[i].at - p->stored->at), p->stored[i].length, value_seed(seed, value),
                            value_raw(c, p->file, value));
    }
    return error;
}

static int write_part(struct part_mover *m, const struct stored_part *p, const char *bytes)
{
    int error = note_move(m, p);
    for (uint32_t i = 0; i < p->values && !error; i++) {
        struct value_place value = {p->file, p->value + i, 0, p->stored[i].length};
        error = writer_put(&m->writer, m->place++, &value, bytes + (p->stored[i].at - p->stored->at));
    }
    return error;
}

static int move_part(struct part_mover *m, const struct segment_file *file, const struct stored_part *p)
{
    const char *bytes;
    int error = find_part(m, file, p, &bytes);
    if (!error)
        error = check_part(m, p, bytes);
    if (!error)
        return write_part(m, p, bytes);
    if (!rocks_is_damage(error))
        return error;
    if (stock_drop_part(m->stock, p->part, p->entry))
        atomic_fetch_add(&m->stock->bad_values, 1);
    return 0;
}

/* Includes what the replaced segment had replaced itself, if that file still exists because of a reader. */
static int note_replaced(struct part_mover *m, uint32_t segment, const struct index *index)
{
    struct index *replacing = &m->writer.index;
    struct rocks_file there;
    int error = index_replace(replacing, segment);
    for (uint32_t i = 0; i < index->replaced && !error; i++) {
        error = rocks_find(m->stock->rocks, index->replaces[i], &there);
        if (!error)
            error = index_replace(replacing, index->replaces[i]);
        else if (error == -ENOENT)
            error = 0;
    }
    return error;
}

static int move_segment(struct part_mover *m, const struct segment *s, struct match **match)
{
    struct index index;
    int error = contents_read(s->file, m->stock->map->catalog, match, &index);
    if (error)
        return error;
    struct contents_walk walk = walk_of(m->stock, s, &index);
    struct stored_part p;
    while (!error && next_live(&walk, &p))
        error = move_part(m, s->file, &p);
    if (!error)
        error = note_replaced(m, s->number, &index);
    index_fini(&index);
    return error;
}

static int turn_map(struct part_mover *m, struct segment_file *file)
{
    struct stock *k = m->stock;
    bool worn = false;
    pthread_mutex_lock(&k->lock);
    struct segment *s = stock_add(k, file);
    k->rewritten += s ? s->held : 0;
    pthread_mutex_unlock(&k->lock);
    if (!s) {
        segment_file_close(file);
        rocks_drop(k->rocks, m->writer.number);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < m->moves; i++)
        worn |= !map_change(k->map, m->move[i].part, m->move[i].from, m->move[i].to);
    if (worn) /* parts were dropped meanwhile: the next round counts them */
        stock_wear(k, s);
    return 0;
}

static bool is_small(const struct stock *k, const struct segment *s)
{
    return s->held <= k->segment_bytes / SMALL_PART;
}

bool reclaim_wants_merge(const struct stock *k)
{
    int small = 0;
    const struct segment *s;
    TAILQ_FOREACH(s, &k->stored, link)
        small += is_small(k, s);
    return small >= MANY_SMALL;
}

static bool is_worn(const struct segment *s)
{
    return s->dead >= s->held / WORN_PART;
}

/* Choose worn or small segments whose live values fit into one new segment. */
static uint32_t choose_segments(const struct stock *k, struct segment **chosen)
{
    uint64_t bytes = 0, values = 0;
    bool merge = reclaim_wants_merge(k);
    uint32_t count = 0;
    struct segment *s;
    TAILQ_FOREACH(s, &k->stored, link) {
        if (count == CHOSEN || (!is_worn(s) && !(merge && s->live && is_small(k, s))))
            continue;
        if (count && (bytes + s->live > k->segment_bytes || values + s->live_values > SEGMENT_PLACES))
            continue;
        bytes += s->live;
        values += s->live_values;
        chosen[count++] = s;
    }
    if (count == 1 && !is_worn(chosen[0]))
        return 0;
    return count;
}

static int move_segments(struct stock *k, struct segment **chosen, uint32_t count, struct match **match)
{
    struct part_mover m = {.stock = k, .buffer = aligned_alloc(SEGMENT_FILE_ALIGN, BUFFER)};
    struct segment_file *file;
    pthread_mutex_lock(&k->lock);
    uint32_t number = k->next_segment++;
    pthread_mutex_unlock(&k->lock);
    int error = writer_begin(k, number, &m.writer);
    if (!m.buffer)
        error = -ENOMEM;
    for (uint32_t i = 0; i < count && !error; i++)
        error = move_segment(&m, chosen[i], match);
    if (!error && m.moves)
        error = writer_end(&m.writer, &file);
    if (!error && m.moves)
        error = turn_map(&m, file);
    writer_fini(&m.writer);
    free(m.move);
    free(m.buffer);
    return error;
}

static bool retire_dead(struct stock *k)
{
    bool any = false;
    for (struct segment *s = TAILQ_FIRST(&k->stored), *next; s; s = next) {
        next = TAILQ_NEXT(s, link);
        if (s->dead == s->held) {
            stock_retire(k, s);
            any = true;
        }
    }
    return any;
}

static int count_worn(struct stock *k, struct match **match)
{
    bool merge = reclaim_wants_merge(k);
    int error = -atomic_load(&k->failing);
    struct segment *s;
    TAILQ_FOREACH(s, &k->stored, link)
        if (!error && (atomic_exchange(&s->worn, false) || (merge && !s->live && is_small(k, s))))
            error = count_dead(k, s, match);
    /* after a disk error, parts that were given up may be counted as dead: do not use the counts */
    return error ? error : -atomic_load(&k->failing);
}

static void end_round(struct stock *k, struct match *match, int error)
{
    match_destroy(match);
    if (error && !stock_may_recover(error))
        stock_close(k, error);
}

int reclaim_round(struct stock *k)
{
    struct segment *chosen[CHOSEN];
    struct match *match = NULL;
    uint32_t count;
    int error = count_worn(k, &match);
    if (!error)
        retire_dead(k);
    while (!error && (count = choose_segments(k, chosen))) {
        error = move_segments(k, chosen, count, &match);
        for (uint32_t i = 0; i < count && !error; i++)
            stock_retire(k, chosen[i]);
    }
    end_round(k, match, error);
    return error;
}

/* A smaller part is not worth rewriting. */
static struct segment *most_dead(const struct stock *k)
{
    struct segment *most = NULL, *s;
    TAILQ_FOREACH(s, &k->stored, link)
        if (s->dead * LEAST_PART >= s->held && s->dead > (most ? most->dead : 0))
            most = s;
    return most;
}

void reclaim_one(struct stock *k)
{
    struct match *match = NULL;
    bool retired = false;
    int error = count_worn(k, &match);
    if (!error)
        retired = retire_dead(k);
    struct segment *s = error || retired ? NULL : most_dead(k);
    if (s && !(error = move_segments(k, &s, 1, &match)))
        stock_retire(k, s);
    end_round(k, match, error);
}
