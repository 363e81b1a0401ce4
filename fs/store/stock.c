/* The common part of a tier: adding and retiring segments, dropping parts, closing. */
#include "fs/store/stock.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define REST SECOND
enum { PAGE = 4096 };

const char *const tier_names[TIERS] = {"ram", "ssd"};

size_t tier_segment_bytes(uint64_t capacity)
{
    uint64_t least = PIECE_BYTES / VALUE_BYTES * (VALUE_MOST + STAGING_ALIGN); /* the largest room fits */
    uint64_t bytes = capacity / 32;
    if (bytes > 64 * MIB)
        bytes = 64 * MIB;
    if (bytes < least)
        bytes = least;
    if (bytes > capacity) /* a room that does not fit has no budget either */
        bytes = capacity;
    return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

int stock_init(struct stock *k, enum tier_name name, const struct tier_config *config, struct map *map,
               struct pool *pool)
{
    *k = (struct stock){.name = name, .map = map, .pool = pool, .state = TIER_ABSENT};
    pthread_mutex_init(&k->lock, NULL);
    cond_init(&k->work);
    cond_init(&k->changed);
    TAILQ_INIT(&k->doomed);
    TAILQ_INIT(&k->stored);
    /* next to a read of an SSD, sharing a cache line costs nothing */
    int error = segments_init(&k->segments, k, name == TIER_RAM);
    if (error || !config->directory)
        return error;
    k->capacity = config->capacity;
    k->verify_once = config->verify_once;
    k->segment_bytes = tier_segment_bytes(config->capacity);
    k->directory = strdup(config->directory);
    k->state = TIER_LOCKED;
    return k->directory ? 0 : -ENOMEM;
}

void stock_fini(struct stock *k)
{
    rocks_close(k->rocks);
    segments_free_all(&k->stored);
    segments_free_all(&k->doomed);
    segments_fini(&k->segments);
    pthread_cond_destroy(&k->work);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    free(k->directory);
}

/* A free staging can be reused; a file is left to the tier's thread. */
static void let_go_if_last(struct segment *s)
{
    struct stock *k = s->stock;
    LOCK_SCOPE(&k->lock);
    if (segment_leave(s)) {
        if (s->staging) {
            s->staging->segment = NULL;
            segment_free(&k->segments, s);
            pthread_cond_broadcast(&k->changed);
        } else {
            TAILQ_INSERT_HEAD(&k->doomed, s, link);
            pthread_cond_signal(&k->work);
        }
    }
}

struct segment *stock_pin(const struct stock *k, uint32_t number)
{
    struct segment *s;
    while ((s = segments_at(&k->segments, number))) {
        if (segment_hold(s, number))
            return s;
        stock_unpin(s);
    }
    return NULL;
}

void stock_unpin(void *segment)
{
    if (segment_release(segment))
        let_go_if_last(segment);
}

void stock_close_segment(struct segment *s)
{
    atomic_store(&s->closed, true);
    let_go_if_last(s);
}

struct segment *stock_add(struct stock *k, struct segment_file *file)
{
    const struct rocks_file *which = segment_file_which(file);
    struct segment *s = segment_new(&k->segments, which->segment, NULL, file);
    if (!s)
        return NULL;
    s->held = (which->bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    k->held += s->held;
    k->files++;
    TAILQ_INSERT_HEAD(&k->stored, s, link);
    return s;
}

void stock_retire(struct stock *k, struct segment *s)
{
    TAILQ_REMOVE(&k->stored, s, link);
    pthread_mutex_lock(&k->lock);
    segments_set(&k->segments, s->number, NULL);
    segment_enter(s, SEGMENT_DOOMED);
    pthread_mutex_unlock(&k->lock);
    stock_close_segment(s);
}

static int drop_file(struct stock *k, const struct segment_file *file)
{
    const struct rocks_file *which = segment_file_which(file);
    if (k->name != TIER_RAM)
        return rocks_drop(k->rocks, which->segment);
    int error = rocks_drop_open(k->rocks, which);
    map_note_dropped(k->map);
    return error;
}

void stock_drop_doomed(struct stock *k)
{
    struct segment *s;
    while ((s = TAILQ_FIRST(&k->doomed))) {
        TAILQ_REMOVE(&k->doomed, s, link);
        pthread_mutex_unlock(&k->lock);
        int error = drop_file(k, s->file);
        segment_file_close(s->file);
        s->file = NULL;
        pthread_mutex_lock(&k->lock);
        k->files--;
        k->dead -= s->dead;
        if (!error)
            k->held -= s->held; /* otherwise its bytes are still on the disk */
        segment_free(&k->segments, s);
        pthread_cond_broadcast(&k->changed);
    }
}

void stock_wear(struct stock *k, struct segment *s)
{
    atomic_store(&s->worn, true);
    LOCK_SCOPE(&k->lock);
    k->worn = true;
    pthread_cond_signal(&k->work);
}

bool stock_drop_part(struct stock *k, uint64_t part, uint64_t entry)
{
    if (!map_change(k->map, part, entry, 0))
        return false;
    atomic_fetch_sub(&k->parts, 1);
    struct segment *s;
    uint32_t number = entry_segment(entry);
    bool again = true;
    while (again && (s = stock_pin(k, number))) {
        stock_wear(k, s);
        again = segments_at(&k->segments, number) != s; /* it was stored meanwhile: mark its new struct */
        stock_unpin(s);
    }
    return true;
}

/* Needs the lock. */
static void put_state(struct stock *k, enum tier_state state, int error, const char *reason)
{
    k->state = state;
    k->error = -error;
    k->reason = reason;
    pthread_cond_broadcast(&k->changed);
    pthread_cond_signal(&k->work);
}

static void say_state(const struct stock *k, enum tier_state state, int error, const char *reason)
{
    if (state == TIER_FAILED || state == TIER_CLOSED)
        log_error("%s tier %s: %s: %s", tier_names[k->name], k->directory, reason ? reason : strerror(-error),
                  state == TIER_CLOSED ? "accepts no more data"
                                       : "not used until the next mount; its files are not changed");
}

void stock_set_state(struct stock *k, enum tier_state state, int error, const char *reason)
{
    pthread_mutex_lock(&k->lock);
    put_state(k, state, error, reason);
    pthread_mutex_unlock(&k->lock);
    say_state(k, state, error, reason);
}

void stock_close(struct stock *k, int error)
{
    if (error != -ENOSPC && error != -EDQUOT)
        atomic_store(&k->failing, -error);
    pthread_mutex_lock(&k->lock);
    bool first = k->state == TIER_OPEN;
    if (first)
        put_state(k, TIER_CLOSED, error, NULL);
    pthread_mutex_unlock(&k->lock);
    if (first)
        say_state(k, TIER_CLOSED, error, NULL);
}

void stock_rest(struct stock *k, int error)
{
    k->resting = clock_now() + REST;
    k->failures++;
    k->failure = error;
    pthread_cond_broadcast(&k->changed);
}
