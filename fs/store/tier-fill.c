/* Filling a tier: rooms, the budget, and the segment that is open. See tier.h for the threads.
 *
 * The budget is charged at reserve with the raw length, corrected at commit by what compression saved, and once more
 * when the segment's file is there and its true length known. A filler waits while every staging is taken: for as long
 * as the tier's thread stores one, but only PATIENCE for rooms of others, who may hang at a dead source. */
#include "fs/store/tier.h"

#include "fs/base/file.h"

#include <errno.h>
#include <time.h>

#define PATIENCE 5000000000u
enum { PART_ROOM = PIECE_BYTES / VALUE_BYTES };

static size_t align_value(size_t raw, bool in_blocks)
{
    size_t stored = VALUE_HEADER + raw + (in_blocks ? value_sums(raw) : 0);
    return (stored + VALUE_ALIGN - 1) & ~(size_t)(VALUE_ALIGN - 1);
}

void tier_seal(struct tier *t)
{
    t->open->state = SEGMENT_SEALED;
    if (t->open->rooms == 0)
        pthread_cond_signal(&t->work);
    t->open = NULL;
}

/* A staging that nobody has: its place, or -1. One that is made already is preferred. */
static int free_staging(const struct tier *t)
{
    int unmade = -1;
    for (int i = 0; i < t->stagings; i++) {
        if (t->staged[i])
            continue;
        if (t->staging[i])
            return i;
        unmade = i;
    }
    return unmade;
}

static int made_stagings(const struct tier *t)
{
    int made = 0;
    for (int i = 0; i < STAGINGS; i++)
        made += t->staging[i] != NULL;
    return made;
}

/* Without the lock in between. When one exists already, the tier lives with as many as there is room for. */
static int make_staging(struct tier *t, int i)
{
    t->making = true;
    pthread_mutex_unlock(&t->lock);
    struct staging *made = NULL;
    int error = staging_create(t->directory, t->segment_bytes, &made);
    pthread_mutex_lock(&t->lock);
    t->making = false;
    t->staging[i] = made;
    if (error && made_stagings(t)) {
        t->staging[i] = t->staging[t->stagings - 1];
        t->staged[i] = t->staged[t->stagings - 1];
        t->staging[t->stagings - 1] = NULL;
        t->staged[t->stagings - 1] = NULL;
        t->stagings--;
        error = 0;
    }
    pthread_cond_broadcast(&t->changed);
    return error;
}

static int begin_segment(struct tier *t, int i)
{
    if (t->next_segment == UINT32_MAX)
        return -EOVERFLOW;
    struct segment *s = segment_new(&t->segments, t, t->next_segment, t->staging[i], NULL);
    if (!s)
        return -ENOMEM;
    if (segments_set(&t->segments, s->number, s)) {
        segment_free(&t->segments, s);
        return -ENOMEM;
    }
    t->next_segment++;
    s->held = SEGMENT_COST;
    t->held += SEGMENT_COST;
    t->staged[i] = s;
    t->open = s;
    pthread_cond_signal(&t->work); /* it looks after segments that stay open */
    return 0;
}

/* Will a staging become free without any filler's help? */
static bool store_goes_on(const struct tier *t)
{
    if (t->making)
        return true;
    for (int i = 0; i < STAGINGS; i++) {
        const struct segment *s = t->staged[i];
        if (s && (s->state == SEGMENT_STORING || (s->state == SEGMENT_SEALED && s->rooms == 0)))
            return true;
    }
    return false;
}

static void wait_a_moment(struct tier *t)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

/* One step towards an open segment: 0: look again; else there is none. */
static int step_to_open(struct tier *t, uint64_t *deadline)
{
    int i = t->making ? -1 : free_staging(t);
    if (i >= 0)
        return t->staging[i] ? begin_segment(t, i) : make_staging(t, i);
    if (t->resting)
        return -EBUSY;
    if (store_goes_on(t))
        *deadline = clock_now() + PATIENCE;
    else if (clock_now() > *deadline)
        return -EBUSY;
    wait_a_moment(t);
    return 0;
}

struct need {
    uint64_t budget;
    size_t staging;
    uint32_t values;
    bool in_blocks;
};

static struct need need_of(uint32_t length, bool in_blocks)
{
    uint32_t whole = length / VALUE_BYTES, rest = length % VALUE_BYTES, values = whole + (rest > 0);
    size_t staging = whole * align_value(VALUE_BYTES, in_blocks) + (rest ? align_value(rest, in_blocks) : 0);
    uint64_t stored = length + (uint64_t)values * VALUE_HEADER + (in_blocks ? value_sums(length) : 0);
    return (struct need){stored + (uint64_t)values * VALUE_COST, staging, values, in_blocks};
}

static bool fits(const struct segment *s, const struct need *need)
{
    return s->used + need->staging <= s->staging->size && s->places + need->values <= SEGMENT_PLACES;
}

static void give_room(struct tier *t, const struct need *need, uint32_t file, uint64_t offset, uint32_t length,
                      struct room *room)
{
    struct segment *s = t->open;
    *room = (struct room){.values = (int)need->values,
                          .segment = s,
                          .place = s->places,
                          .file = file,
                          .offset = offset,
                          .bytes = need->budget};
    for (uint32_t i = 0; i < need->values; i++) {
        uint32_t raw = length < VALUE_BYTES ? length : VALUE_BYTES;
        s->staging->place[s->places++] =
            (struct place){file, (uint32_t)(offset / VALUE_BYTES) + i, (uint32_t)s->used, 0};
        room->value[i] = (struct iovec){s->staging->bytes + s->used + VALUE_HEADER, raw};
        s->used += align_value(raw, need->in_blocks);
        length -= raw;
    }
    s->rooms++;
    t->touched = clock_now();
    s->held += need->budget;
    t->held += need->budget;
}

/* With the lock. 0, -ENOSPC: the budget is spent; else `failed` says what went wrong. */
static int find_room(struct tier *t, const struct need *need, int *failed)
{
    uint64_t deadline = clock_now() + PATIENCE;
    while (!*failed) {
        if (t->state != TIER_OPEN || need->staging > t->segment_bytes ||
            t->held + need->budget + (t->open ? 0 : SEGMENT_COST) > t->capacity)
            return -ENOSPC;
        if (t->open && fits(t->open, need))
            return 0;
        if (t->open)
            tier_seal(t);
        else
            *failed = step_to_open(t, &deadline);
    }
    return *failed;
}

int tier_reserve(struct tier *t, uint32_t file, uint64_t offset, uint32_t length, struct room *room)
{
    struct need need = need_of(length, file_in_blocks(t->common->catalog, file));
    int failed = 0;
    pthread_mutex_lock(&t->lock);
    int error = find_room(t, &need, &failed);
    if (!error)
        give_room(t, &need, file, offset, length, room);
    pthread_mutex_unlock(&t->lock);
    if (failed && failed != -EBUSY && !tier_will_pass(failed))
        tier_close_admission(t, failed);
    return error ? -ENOSPC : 0;
}

/* The room is back: `kept` of its budget is in use. */
static void end_room(struct tier *t, struct room *room, uint64_t kept)
{
    struct segment *s = room->segment;
    uint64_t back = room->bytes - kept;
    pthread_mutex_lock(&t->lock);
    s->held -= back;
    t->held -= back;
    s->rooms--;
    t->touched = clock_now();
    if (s->rooms == 0 && s->state == SEGMENT_SEALED)
        pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    room->segment = NULL;
}

static bool worth_trying(const struct common *common, const struct room *room)
{
    size_t n;
    const char *name = catalog_name(common->catalog, catalog_file_ino(common->catalog, room->file), &n);
    const struct iovec *first = &room->value[0];
    size_t head = room->offset ? 0 : first->iov_len; /* only a file's first bytes tell its format */
    return value_worth_trying(name, first->iov_base, head, catalog_file(common->catalog, room->file).size);
}

/* A value that does not shrink is a sign for the rest of the room. */
static void seal_values(struct common *common, struct value_codec_state *codec, const struct room *room,
                        uint32_t length[])
{
    uint64_t seed = catalog_file_seed(common->catalog, room->file);
    uint64_t value = room->offset / VALUE_BYTES;
    unsigned wish = (worth_trying(common, room) ? VALUE_TRY : 0) |
                    (file_in_blocks(common->catalog, room->file) ? VALUE_IN_BLOCKS : 0);
    for (int i = 0; i < room->values; i++) {
        size_t raw = room->value[i].iov_len;
        void *at = (char *)room->value[i].iov_base - VALUE_HEADER;
        length[i] = (uint32_t)value_seal(codec, at, raw, value_seed(seed, value + (uint64_t)i), wish);
        if (length[i] >= VALUE_HEADER + raw)
            wish &= ~(unsigned)VALUE_TRY;
    }
}

/* Publish the room's parts; returns the budget in use by those that nobody else had put there before. */
static uint64_t publish(struct tier *t, const struct room *room, const uint32_t length[])
{
    struct segment *s = room->segment;
    struct place *place = s->staging->place + room->place;
    uint32_t step = part_values(t->common->catalog, room->file);
    uint64_t part = cut_at(t->common->parts, room->file, room->offset), kept = 0;
    for (uint32_t i = 0; i < (uint32_t)room->values; i += step, part++) {
        uint64_t bytes = 0;
        for (uint32_t j = i; j < i + step; j++) {
            place[j].length = length[j];
            bytes += length[j] + VALUE_COST;
        }
        if (map_change(&t->common->map, part, 0, entry_make(t->name, s->number, room->place + i))) {
            atomic_fetch_add(&t->parts, 1);
            kept += bytes;
            continue;
        }
        for (uint32_t j = i; j < i + step; j++)
            place[j].length = 0;
    }
    return kept;
}

int tier_commit(struct tier *t, struct value_codec_state *codec, struct room *room)
{
    uint32_t length[PART_ROOM];
    seal_values(t->common, codec, room, length);
    end_room(t, room, publish(t, room, length));
    return 0;
}

void tier_abandon(struct tier *t, struct room *room)
{
    end_room(t, room, 0);
}
