/* A tier as a whole: its sizes, its beginning and end, and what is asked of it by others than fillers and readers. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { PAGE = 4096 };

size_t tier_segment_bytes(uint64_t capacity)
{
    uint64_t least = PIECE_BYTES / VALUE_BYTES * (VALUE_MOST + VALUE_ALIGN); /* the largest room fits */
    uint64_t bytes = capacity / 32;
    if (bytes > 64 * MIB)
        bytes = 64 * MIB;
    if (bytes < least)
        bytes = least;
    if (bytes > capacity) /* a room that does not fit has no budget either */
        bytes = capacity;
    return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static uint64_t segments_expected(uint64_t capacity)
{
    size_t bytes = tier_segment_bytes(capacity);
    return bytes ? capacity / bytes + STAGINGS + 1 : 0;
}

uint64_t tier_overhead(uint64_t capacity)
{
    /* the stagings, one segment's values twice while they are moved, and what RocksDB keeps for itself */
    return (STAGINGS + 1) * tier_segment_bytes(capacity) + rocks_overhead(segments_expected(capacity));
}

void tier_close_admission(struct tier *t, int error)
{
    pthread_mutex_lock(&t->lock);
    bool first = t->state == TIER_OPEN;
    if (first) {
        t->state = TIER_CLOSED;
        t->error = -error;
        if (t->open)
            tier_seal(t); /* what is in memory is stored if it can be */
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    if (first)
        log_error("%s tier %s: %s: takes nothing more", tier_names[t->name], t->directory, strerror(-error));
}

/* When the segment is stored meanwhile, the struct that takes its place must know, too. */
static void mark_worn(struct tier *t, uint32_t number)
{
    struct segment *s;
    bool again = true;
    while (again && (s = segment_pin(&t->segments, number))) {
        atomic_store(&s->worn, true);
        again = segments_at(&t->segments, number) != s;
        segment_unpin(s);
    }
}

bool tier_drop_part(struct tier *t, uint64_t part, uint64_t entry)
{
    if (!map_change(&t->common->map, part, entry, 0))
        return false;
    atomic_fetch_sub(&t->parts, 1);
    mark_worn(t, entry_segment(entry));
    pthread_mutex_lock(&t->lock);
    t->worn = true;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    return true;
}

void tier_segment_free(struct segment *s)
{
    struct tier *t = s->tier;
    pthread_mutex_lock(&t->lock);
    if (s->staging) {
        for (int i = 0; i < STAGINGS; i++)
            if (t->staged[i] == s)
                t->staged[i] = NULL;
        segment_free(&t->segments, s);
        pthread_cond_broadcast(&t->changed);
    } else {
        s->next = t->doomed;
        t->doomed = s;
        pthread_cond_signal(&t->work);
    }
    pthread_mutex_unlock(&t->lock);
}

static bool staged_before(const struct tier *t, uint32_t number)
{
    for (int i = 0; i < STAGINGS; i++) {
        const struct segment *s = t->staged[i];
        if (s && s->number < number && (s->state == SEGMENT_SEALED || s->state == SEGMENT_STORING))
            return true;
    }
    return false;
}

int tier_flush(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->open)
        tier_seal(t);
    uint32_t number = t->next_segment;
    uint64_t failures = t->failures;
    t->resting = 0;
    pthread_cond_signal(&t->work);
    while (staged_before(t, number) && t->failures == failures)
        pthread_cond_wait(&t->changed, &t->lock);
    int error = t->failures != failures ? t->failure : t->error ? -t->error : 0;
    pthread_mutex_unlock(&t->lock);
    return error;
}

int tier_reclaim(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool can = t->state == TIER_OPEN || t->state == TIER_CLOSED;
    if (can) {
        uint64_t asked = ++t->reclaims_asked;
        pthread_cond_signal(&t->work);
        while (t->reclaims_done < asked)
            pthread_cond_wait(&t->changed, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return 0;
}

void tier_get_status(struct tier *t, struct tier_status *status)
{
    pthread_mutex_lock(&t->lock);
    *status = (struct tier_status){
        .state = t->state,
        .error = t->error,
        .capacity = t->capacity,
        .held = t->held,
        .segments = t->files,
        .dead = t->dead,
    };
    for (int i = 0; i < STAGINGS; i++)
        status->segments += t->staged[i] && t->staged[i]->state != SEGMENT_DRAINING;
    pthread_mutex_unlock(&t->lock);
    status->parts = atomic_load(&t->parts);
    status->bad_values = atomic_load(&t->bad_values);
}

static void destroy_nothing(struct layer *layer)
{
    (void)layer; /* the shard owns its tiers */
}

static const struct layer_ops tier_ops[TIERS] = {
    [TIER_RAM] = {.name = "ram", .get = tier_get, .destroy = destroy_nothing},
    [TIER_SSD] = {.name = "ssd", .get = tier_get, .destroy = destroy_nothing, .blocks = true},
};

static void init_sync(struct tier *t)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, &monotonic);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int tier_create(enum tier_name name, const struct tier_config *config, struct common *common, struct tier **out)
{
    struct tier *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->layer.ops = &tier_ops[name];
    t->name = name;
    t->common = common;
    t->lock_fd = -1;
    t->stagings = STAGINGS;
    t->state = TIER_ABSENT;
    init_sync(t);
    int error = segments_init(&t->segments);
    if (!error && config->directory) {
        t->capacity = config->capacity;
        t->segment_bytes = tier_segment_bytes(config->capacity);
        t->directory = strdup(config->directory);
        t->state = TIER_LOCKED;
        error = t->directory ? 0 : -ENOMEM;
    }
    if (!error && config->directory) {
        tier_open(t);
        error = -pthread_create(&t->thread, NULL, tier_run, t);
        t->running = !error;
    }
    if (error) {
        tier_destroy(t);
        return error;
    }
    *out = t;
    return 0;
}

static void stop_thread(struct tier *t)
{
    if (!t->running)
        return;
    tier_flush(t);
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
}

static void free_segments(struct tier *t)
{
    while (t->stored) {
        struct segment *s = t->stored;
        t->stored = s->next_stored;
        known_destroy(s->known);
        free(s);
    }
    while (t->doomed) {
        struct segment *s = t->doomed;
        t->doomed = s->next;
        known_destroy(s->known);
        free(s);
    }
    for (int i = 0; i < STAGINGS; i++) {
        free(t->staged[i]);
        staging_destroy(t->staging[i]);
    }
    segments_fini(&t->segments);
}

void tier_destroy(struct tier *t)
{
    if (!t)
        return;
    stop_thread(t);
    rocks_close(t->rocks);
    free_segments(t);
    if (t->lock_fd >= 0)
        close(t->lock_fd);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t->directory);
    free(t);
}
