/* The tier's thread and interface. The thread opens the database (restore.c), again if another process still has it;
 * stores sealed segments (ingest.c); moves live values out of worn ones (reclaim.c), and drops these. */
#include "fs/store/tier.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/store/ingest.h"
#include "fs/store/reclaim.h"
#include "fs/store/restore.h"
#include "fs/store/tier-read.h"

#include <stdlib.h>

#define LOCK_RETRY (50 * MILLISECOND)
#define ROOM_PATIENCE (2 * SECOND)
#define ROOM_LOOK (100 * MILLISECOND)

/* The state stays LOCKED if it is to be tried again. */
static void open_tier(struct tier *t)
{
    const char *reason = NULL;
    struct stock *k = &t->stock;
    int error = folder_take(&t->folder, &t->config, &reason);
    if (!error)
        error = restore_stock(k, &t->folder);
    if (error == -EBUSY || stock_may_recover(error))
        return;
    int failing = atomic_load(&k->failing);
    if (error) {
        folder_fini(&t->folder);
        stock_set_state(k, TIER_FAILED, error, reason);
    } else {
        folder_clean(&t->folder);
        stock_set_state(k, failing ? TIER_CLOSED : TIER_OPEN, -failing, NULL);
    }
}

/* With the lock, which is released meanwhile. */
static void reclaim(struct tier *t)
{
    struct stock *k = &t->stock;
    uint64_t asked = t->reclaims_asked;
    k->worn = false;
    pthread_mutex_unlock(&k->lock);
    int error = reclaim_round(k);
    pthread_mutex_lock(&k->lock);
    t->reclaim_error = error;
    if (stock_may_recover(error)) {
        k->worn = true;
        stock_rest(k, error);
    }
    stock_drop_doomed(k); /* so that the caller of a reclaim finds its room free */
    t->reclaims_done = asked;
    pthread_cond_broadcast(&k->changed);
}

/* With the lock, which is released meanwhile. */
static void squeeze(struct tier *t)
{
    struct stock *k = &t->stock;
    uint64_t held = k->held;
    t->cramped = false;
    pthread_mutex_unlock(&k->lock);
    reclaim_one(k);
    pthread_mutex_lock(&k->lock);
    stock_drop_doomed(k);
    t->squeezed = held > k->held ? held - k->held : 0;
    t->squeezes++;
    pthread_cond_broadcast(&k->changed);
}

/* With the lock, which is released meanwhile. */
static void store_segment(struct stock *k, struct segment *s)
{
    pthread_mutex_unlock(&k->lock);
    ingest_segment(k, s);
    bool merge = reclaim_wants_merge(k);
    pthread_mutex_lock(&k->lock);
    k->worn = k->worn || merge;
}

/* With the lock, which is released during work. False: nothing to do. */
static bool do_something(struct tier *t)
{
    struct stock *k = &t->stock;
    struct segment *s;
    if (k->resting && clock_now() >= k->resting)
        k->resting = 0;
    if (!TAILQ_EMPTY(&k->doomed))
        stock_drop_doomed(k);
    else if (!k->resting && (s = rooms_next(&t->rooms)))
        store_segment(k, s);
    else if (t->cramped && !k->resting)
        squeeze(t);
    else if ((k->worn && !k->resting) || t->reclaims_done < t->reclaims_asked)
        reclaim(t);
    else
        return false;
    return true;
}

static void wait_for_work(struct stock *k, uint64_t when)
{
    if (k->resting && (!when || k->resting < when))
        when = k->resting;
    if (when)
        cond_wait_until(&k->work, &k->lock, when);
    else
        pthread_cond_wait(&k->work, &k->lock);
}

static void *tier_thread(void *object)
{
    struct tier *t = object;
    struct stock *k = &t->stock;
    pthread_mutex_lock(&k->lock);
    while (!t->stop && k->state == TIER_LOCKED) {
        cond_wait_until(&k->work, &k->lock, clock_now() + LOCK_RETRY);
        if (t->stop)
            break;
        pthread_mutex_unlock(&k->lock);
        open_tier(t);
        pthread_mutex_lock(&k->lock);
    }
    while (k->rocks) {
        uint64_t look_again = rooms_look(&t->rooms);
        k->busy = clock_now();
        bool done = do_something(t);
        k->busy = 0;
        if (!done && t->stop)
            break;
        if (!done)
            wait_for_work(k, look_again);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

static void tier_destroy(struct layer *layer)
{
    struct tier *t = (struct tier *)layer;
    scrub_stop(&t->scrub);
    if (t->running) {
        tier_flush(t);
        thread_stop(t->thread, &t->stock.lock, &t->stock.work, &t->stop);
    }
    rooms_fini(&t->rooms);
    stock_fini(&t->stock);
    folder_fini(&t->folder);
    free(t);
}

static int tier_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    return tier_read(&((struct tier *)layer)->stock, span, answer);
}

static const struct layer_ops tier_ops = {.get = tier_get, .destroy = tier_destroy};

int tier_create(enum tier_name name, const struct tier_config *config, struct map *map, struct pool *pool,
                struct tier **out)
{
    struct tier *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->layer.ops = &tier_ops;
    t->config = *config;
    folder_init(&t->folder);
    rooms_init(&t->rooms, &t->stock, t->folder.path);
    int error = stock_init(&t->stock, name, config, map, pool);
    t->config.directory = t->stock.directory;
    if (!error && config->directory && !config->shut) {
        open_tier(t);
        error = thread_create(&t->thread, tier_names[name], tier_thread, t);
        t->running = !error;
        if (!error && config->verify_once)
            error = scrub_start(&t->scrub, &t->stock);
    }
    if (error)
        tier_destroy(&t->layer);
    else
        *out = t;
    return error;
}

/* With the lock, which is released meanwhile. -EBUSY: the remaining segments wait for rooms of other threads, whose
 * source may hang. */
static int wait_for_sealed(struct tier *t, uint32_t before, uint64_t failures)
{
    struct stock *k = &t->stock;
    uint64_t deadline = clock_now() + ROOM_PATIENCE;
    while (rooms_have_sealed(&t->rooms, before) && k->failures == failures) {
        uint64_t now = clock_now();
        if (k->busy || rooms_store_goes_on(&t->rooms))
            deadline = now + ROOM_PATIENCE;
        else if (now > deadline)
            return -EBUSY;
        cond_wait_until(&k->changed, &k->lock, now + ROOM_LOOK);
    }
    return k->failures != failures ? k->failure : -k->error;
}

int tier_flush(struct tier *t)
{
    struct stock *k = &t->stock;
    LOCK_SCOPE(&k->lock);
    rooms_seal(&t->rooms);
    k->resting = 0;
    pthread_cond_signal(&k->work);
    return wait_for_sealed(t, k->next_segment, k->failures);
}

int tier_reclaim(struct tier *t)
{
    struct stock *k = &t->stock;
    int error = 0;
    LOCK_SCOPE(&k->lock);
    if (k->state == TIER_OPEN || k->state == TIER_CLOSED) {
        uint64_t asked = ++t->reclaims_asked;
        pthread_cond_signal(&k->work);
        while (t->reclaims_done < asked)
            pthread_cond_wait(&k->changed, &k->lock);
        error = t->reclaim_error;
    }
    return error;
}

/* First store what is only in memory: other nodes may wait until it is stored. A pausing tier makes no room. */
uint64_t tier_make_room(struct tier *t)
{
    struct stock *k = &t->stock;
    uint64_t bytes = 0;
    int error = tier_flush(t);
    if (error && error != -EBUSY)
        return 0;
    LOCK_SCOPE(&k->lock);
    uint64_t squeezes = t->squeezes;
    t->cramped = k->state == TIER_OPEN && !k->resting;
    pthread_cond_signal(&k->work);
    while (t->squeezes == squeezes && k->state == TIER_OPEN && !k->resting)
        pthread_cond_wait(&k->changed, &k->lock);
    if (t->squeezes != squeezes)
        bytes = t->squeezed;
    return bytes;
}

void tier_get_status(struct tier *t, struct tier_status *status)
{
    struct stock *k = &t->stock;
    LOCK_SCOPE(&k->lock);
    *status = (struct tier_status){
        .state = k->state,
        .error = k->error,
        .reason = k->reason,
        .capacity = k->capacity,
        .held = k->held,
        .parts = atomic_load(&k->parts),
        .segments = k->files + (uint64_t)rooms_segments(&t->rooms),
        .dead = k->dead,
        .bad_values = atomic_load(&k->bad_values),
        .rewritten = k->rewritten,
        .scrub = {atomic_load(&t->scrub.rate), atomic_load(&t->scrub.bytes), atomic_load(&t->scrub.rounds)},
    };
}
