/* The tier's thread: what it does, and the storing of a sealed segment. An open segment to which nothing comes is
 * stored as well, so that a crash does not cost what was read long before. */
#include "fs/store/tier.h"

#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PAGE_MASK 4095u
#define LOCK_RETRY UINT64_C(50000000) /* nanoseconds, all of them */
#define IDLE UINT64_C(5000000000)
#define REST UINT64_C(1000000000)

/* Does the map lead to the value at this place? */
static bool is_live(const struct tier *t, const struct segment *s, uint32_t place)
{
    const struct place *p = &s->staging->place[place];
    const struct common *common = t->common;
    uint32_t first = part_values(common->catalog, p->file) > 1 ? place - p->value : place;
    uint64_t part = cut_at(common->parts, p->file, (uint64_t)p->value * VALUE_BYTES);
    return p->length && map_get(&common->map, part) == entry_make(t->name, s->number, first);
}

static int write_values(struct tier_writer *w, const struct segment *s)
{
    int error = 0;
    for (uint32_t place = 0; place < s->places && !error; place++) {
        const struct place *p = &s->staging->place[place];
        if (is_live(w->tier, s, place))
            error = tier_writer_put(w, place, p->file, p->value, s->staging->bytes + p->at, p->length);
    }
    return error;
}

static int write_segment(struct tier *t, const struct segment *s, uint64_t *bytes, struct known **known)
{
    struct tier_writer w;
    int error = tier_writer_begin(t, s->number, &w);
    if (!error)
        error = write_values(&w, s);
    if (!error)
        error = tier_writer_end(&w, bytes, known);
    tier_writer_fini(&w);
    return error;
}

static bool has_values(const struct tier *t, const struct segment *s)
{
    for (uint32_t place = 0; place < s->places; place++)
        if (is_live(t, s, place))
            return true;
    return false;
}

struct segment *tier_add_stored(struct tier *t, uint32_t number, uint64_t bytes, struct known *known)
{
    struct segment *s = segment_new(&t->segments, t, number, NULL, known);
    if (!s) {
        known_destroy(known);
        return NULL;
    }
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
static void leave_staging(struct tier *t, struct segment *s, uint64_t bytes, struct known *known)
{
    struct segment *stored = NULL;
    pthread_mutex_lock(&t->lock);
    if (bytes)
        stored = tier_add_stored(t, s->number, bytes, known);
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

/* With the lock: a pause, for want of memory or descriptors. */
static void rest(struct tier *t, int error)
{
    t->resting = clock_now() + REST;
    t->failures++;
    t->failure = error;
    pthread_cond_broadcast(&t->changed);
}

static void put_off(struct tier *t, struct segment *s, int error)
{
    pthread_mutex_lock(&t->lock);
    s->state = SEGMENT_SEALED;
    rest(t, error);
    pthread_mutex_unlock(&t->lock);
    log_limited(LOG_LEVEL_WARNING, 5, "%s tier %s: store a segment: %s: tried again", tier_names[t->name], t->directory,
                strerror(-error));
}

int tier_store(struct tier *t, struct segment *s)
{
    uint64_t bytes = 0;
    struct known *known = NULL;
    int error = has_values(t, s) ? write_segment(t, s, &bytes, &known) : 0;
    if (!error) {
        leave_staging(t, s, bytes, known);
        return 0;
    }
    if (tier_will_pass(error)) {
        put_off(t, s, error);
        return error;
    }
    tier_close_admission(t, error);
    pthread_mutex_lock(&t->lock);
    s->state = SEGMENT_STUCK;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
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
    known_destroy(s->known);
    s->known = NULL;
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

static void seal_idle(struct tier *t)
{
    uint64_t now = clock_now();
    if (!t->open || now < t->touched + IDLE)
        return;
    if (t->open->rooms)
        t->touched = now; /* somebody is slow */
    else
        tier_seal(t);
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

/* With the lock, which is given up meanwhile. */
static void reclaim(struct tier *t)
{
    uint64_t asked = t->reclaims_asked;
    t->worn = false;
    pthread_mutex_unlock(&t->lock);
    int error = tier_reclaim_round(t);
    pthread_mutex_lock(&t->lock);
    if (error) {
        t->worn = true;
        rest(t, error);
    }
    drop_doomed(t); /* whoever asked for a reclaim finds its room free */
    t->reclaims_done = asked;
    pthread_cond_broadcast(&t->changed);
}

static void store(struct tier *t, struct segment *s)
{
    pthread_mutex_unlock(&t->lock);
    tier_store(t, s);
    bool merge = tier_wants_merge(t);
    pthread_mutex_lock(&t->lock);
    t->worn = t->worn || merge;
}

/* With the lock, which is given up while something is done. False: nothing to do. */
static bool do_something(struct tier *t)
{
    struct segment *s;
    if (t->resting && clock_now() >= t->resting)
        t->resting = 0;
    seal_idle(t);
    if (t->doomed)
        drop_doomed(t);
    else if (!t->resting && (s = next_to_store(t)))
        store(t, s);
    else if ((t->worn && !t->resting) || t->reclaims_done < t->reclaims_asked)
        reclaim(t);
    else
        return false;
    return true;
}

static void wait_until(struct tier *t, uint64_t when)
{
    struct timespec until = {(time_t)(when / 1000000000), (long)(when % 1000000000)};
    pthread_cond_timedwait(&t->work, &t->lock, &until);
}

static void wait_for_work(struct tier *t)
{
    uint64_t when = t->open ? t->touched + IDLE : 0;
    if (t->resting && (!when || t->resting < when))
        when = t->resting;
    if (when)
        wait_until(t, when);
    else
        pthread_cond_wait(&t->work, &t->lock);
}

static void wait_for_lock(struct tier *t)
{
    while (!t->stop && t->state == TIER_LOCKED) {
        wait_until(t, clock_now() + LOCK_RETRY);
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
            wait_for_work(t);
        }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}
