/* The tier's thread: what it does, and the storing of a sealed segment. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PAGE_MASK 4095u
enum { RETRY_NANOSECONDS = 50000000 };

/* Does the map lead to the value at this place? */
static bool is_live(const struct tier *t, const struct segment *s, uint32_t place)
{
    const struct place *p = &s->staging->place[place];
    const struct common *common = t->common;
    uint32_t first = part_values(common->catalog, p->file) > 1 ? place - p->value : place;
    uint64_t part = geometry_part_at(common->geometry, p->file, (uint64_t)p->value * VALUE_BYTES);
    return p->length && map_get(&common->map, part) == entry_make(t->name, s->number, first);
}

static int note_place(struct tier *t, struct index *index, uint32_t place, const struct place *p)
{
    struct digest identity = {{0}};
    if (!index_continues(index, p->file, p->value, place))
        identity = catalog_file_identity(t->common->catalog, p->file);
    return index_add(index, p->file, p->value, place, p->length, &identity);
}

static int write_values(struct tier *t, const struct segment *s, struct rocks_writer *writer)
{
    struct index index = {.catalog = *catalog_digest(t->common->catalog)};
    CLEANUP_STR struct str record = STR_INIT;
    int error = 0;
    for (uint32_t place = 0; place < s->places && !error; place++) {
        const struct place *p = &s->staging->place[place];
        if (!is_live(t, s, place))
            continue;
        error = rocks_write_put(writer, place, s->staging->bytes + p->at, p->length);
        if (!error)
            error = note_place(t, &index, place, p);
    }
    if (!error)
        error = index_encode(&index, s->number, &record);
    if (!error)
        error = rocks_write_put(writer, INDEX_PLACE, record.data, record.length);
    index_fini(&index);
    return error;
}

static int write_segment(struct tier *t, const struct segment *s, uint64_t *bytes)
{
    struct rocks_writer *writer;
    int error = rocks_write_begin(t->rocks, s->number, &writer);
    if (error)
        return error;
    error = write_values(t, s, writer);
    if (!error)
        return rocks_write_end(writer, bytes);
    rocks_write_cancel(writer);
    return error;
}

static bool has_values(const struct tier *t, const struct segment *s)
{
    for (uint32_t place = 0; place < s->places; place++)
        if (is_live(t, s, place))
            return true;
    return false;
}

struct segment *tier_add_stored(struct tier *t, uint32_t number, uint64_t bytes)
{
    struct segment *s = segment_new(&t->segments, t, number, NULL);
    if (!s)
        return NULL;
    s->held = (bytes + PAGE_MASK) & ~(uint64_t)PAGE_MASK;
    if (segments_set(&t->segments, number, s)) {
        segment_free(&t->segments, s);
        return NULL;
    }
    t->held += s->held;
    t->files++;
    s->next_stored = t->stored;
    t->stored = s;
    return s;
}

/* The staged segment gives way to the stored one, or to nothing. */
static void leave_staging(struct tier *t, struct segment *s, uint64_t bytes)
{
    struct segment *stored = NULL;
    pthread_mutex_lock(&t->lock);
    if (bytes)
        stored = tier_add_stored(t, s->number, bytes);
    if (bytes && !stored) { /* no memory: its values stay where they are */
        s->state = SEGMENT_STUCK;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        return;
    }
    if (!stored)
        segments_set(&t->segments, s->number, NULL);
    s->state = SEGMENT_DRAINING;
    t->held -= s->held;
    if (stored && atomic_load(&s->worn)) {
        atomic_store(&stored->worn, true);
        t->worn = true;
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    segment_unpin(s);
}

int tier_store(struct tier *t, struct segment *s)
{
    uint64_t bytes = 0;
    int error = has_values(t, s) ? write_segment(t, s, &bytes) : 0;
    if (!error) {
        leave_staging(t, s, bytes);
        return 0;
    }
    pthread_mutex_lock(&t->lock);
    s->state = SEGMENT_STUCK;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    tier_close_admission(t, error);
    return error;
}

void tier_retire(struct tier *t, struct segment *s)
{
    struct segment **link = &t->stored;
    while (*link != s)
        link = &(*link)->next_stored;
    *link = s->next_stored;
    pthread_mutex_lock(&t->lock);
    segments_set(&t->segments, s->number, NULL);
    s->state = SEGMENT_DOOMED;
    pthread_mutex_unlock(&t->lock);
    segment_unpin(s);
}

static void drop(struct tier *t, struct segment *s)
{
    int error = rocks_drop(t->rocks, s->number);
    pthread_mutex_lock(&t->lock);
    t->files--;
    t->dead -= s->dead;
    if (!error)
        t->held -= s->held; /* else its bytes are still on the disk */
    segment_free(&t->segments, s);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* With the lock, which is given up meanwhile. */
static void drop_doomed(struct tier *t)
{
    struct segment *s;
    while ((s = t->doomed)) {
        t->doomed = s->next;
        pthread_mutex_unlock(&t->lock);
        drop(t, s);
        pthread_mutex_lock(&t->lock);
    }
}

/* The oldest one that waits for nobody's room. */
static struct segment *next_to_store(struct tier *t)
{
    struct segment *oldest = NULL;
    for (int i = 0; i < STAGINGS; i++) {
        struct segment *s = t->staged[i];
        if (s && s->state == SEGMENT_SEALED && s->rooms == 0 && (!oldest || s->number < oldest->number))
            oldest = s;
    }
    if (oldest)
        oldest->state = SEGMENT_STORING;
    return oldest;
}

/* With the lock, which is given up while something is done. False: nothing to do. */
static bool do_something(struct tier *t)
{
    struct segment *s;
    if (t->doomed) {
        drop_doomed(t);
        return true;
    }
    if ((s = next_to_store(t))) {
        pthread_mutex_unlock(&t->lock);
        tier_store(t, s);
    } else if (t->worn || t->reclaims_done < t->reclaims_asked) {
        uint64_t asked = t->reclaims_asked;
        t->worn = false;
        pthread_mutex_unlock(&t->lock);
        tier_reclaim_round(t);
        pthread_mutex_lock(&t->lock);
        drop_doomed(t); /* whoever asked for a reclaim finds its room free */
        t->reclaims_done = asked;
        pthread_cond_broadcast(&t->changed);
        return true;
    } else {
        return false;
    }
    pthread_mutex_lock(&t->lock);
    return true;
}

static void wait_for_lock(struct tier *t)
{
    while (!t->stop && t->state == TIER_LOCKED) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += RETRY_NANOSECONDS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&t->work, &t->lock, &until);
        if (t->stop)
            return;
        pthread_mutex_unlock(&t->lock);
        tier_open(t);
        pthread_mutex_lock(&t->lock);
    }
}

void *tier_run(void *object)
{
    struct tier *t = object;
    pthread_mutex_lock(&t->lock);
    wait_for_lock(t);
    while (t->rocks)
        if (!do_something(t)) {
            if (t->stop)
                break;
            pthread_cond_wait(&t->work, &t->lock);
        }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}
