/* The few plans that are kept. */
#include "fs/mount/control/plans.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { LOOK_EVERY_MS = 100 }; /* whether who waits has given up */

void plans_init(struct plans *plans, uint64_t most)
{
    pthread_condattr_t monotonic;

    *plans = (struct plans){.most = most};
    pthread_mutex_init(&plans->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&plans->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void destroy(struct planned *planned)
{
    if (!planned)
        return;
    free(planned->lists);
    free(planned);
}

void plans_fini(struct plans *plans)
{
    for (int i = 0; i < PLANS_KEPT; i++)
        destroy(plans->plan[i]);
    pthread_cond_destroy(&plans->changed);
    pthread_mutex_destroy(&plans->lock);
}

/* Of one in the making nothing is known: it is its maker's alone. */
static uint64_t size_of(const struct planned *planned)
{
    return planned->ready ? plan_shape_place(&planned->shape, planned->shape.ranks) * sizeof *planned->lists : 0;
}

/* The least recently asked for that nobody holds; a place that is free before all. -1: none. */
static int find_victim(const struct plans *plans, bool used_only)
{
    int victim = -1;

    for (int i = 0; i < PLANS_KEPT; i++) {
        const struct planned *p = plans->plan[i];
        if (!p && !used_only)
            return i;
        if (p && p->ready && p->references == 0 && (victim < 0 || p->used < plans->plan[victim]->used))
            victim = i;
    }
    return victim;
}

static void drop(struct plans *plans, int place)
{
    destroy(plans->plan[place]);
    plans->plan[place] = NULL;
}

static void make_room(struct plans *plans)
{
    for (;;) {
        uint64_t bytes = 0;
        for (int i = 0; i < PLANS_KEPT; i++)
            bytes += plans->plan[i] ? size_of(plans->plan[i]) : 0;
        int victim = bytes > plans->most ? find_victim(plans, true) : -1;
        if (victim < 0)
            return;
        drop(plans, victim);
    }
}

static struct planned *find(const struct plans *plans, const struct digest *key)
{
    for (int i = 0; i < PLANS_KEPT; i++)
        if (plans->plan[i] && memcmp(&plans->plan[i]->key, key, sizeof *key) == 0)
            return plans->plan[i];
    return NULL;
}

static void wait_a_while(struct plans *plans)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_EVERY_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&plans->changed, &plans->lock, &until);
}

/* 0: there is no place for it yet. */
static int begin(struct plans *plans, const struct digest *key, struct planned **planned)
{
    int place = find_victim(plans, false);
    struct planned *made = place < 0 ? NULL : calloc(1, sizeof *made);

    if (!made)
        return place < 0 ? 0 : -ENOMEM;
    made->key = *key;
    made->references = 1;
    made->used = ++plans->asked;
    drop(plans, place);
    plans->plan[place] = made;
    *planned = made;
    return 1;
}

/* The lock is not held while the asker is asked: that reads a file. */
static bool gave_up(struct plans *plans, const struct asker *asker)
{
    bool gone;

    pthread_mutex_unlock(&plans->lock);
    gone = asker->gave_up && asker->gave_up(asker->user);
    pthread_mutex_lock(&plans->lock);
    return gone;
}

/* 0 when there is one that is ready, 1 when the caller is to make it, -EAGAIN when neither is so yet. */
static int try(struct plans *plans, const struct digest *key, struct planned **planned)
{
    struct planned *found = find(plans, key);

    if (!found) {
        int begun = begin(plans, key, planned);
        return begun ? begun : -EAGAIN;
    }
    if (!found->ready)
        return -EAGAIN;
    found->references++;
    found->used = ++plans->asked;
    *planned = found;
    return 0;
}

int plans_get(struct plans *plans, const struct digest *key, const struct asker *asker, struct planned **planned)
{
    int result;

    pthread_mutex_lock(&plans->lock);
    while ((result = try(plans, key, planned)) == -EAGAIN) {
        wait_a_while(plans);
        if (gave_up(plans, asker)) {
            result = -EINTR;
            break;
        }
    }
    pthread_mutex_unlock(&plans->lock);
    return result;
}

void plans_made(struct plans *plans, struct planned *planned)
{
    pthread_mutex_lock(&plans->lock);
    planned->ready = true;
    plans->made++;
    make_room(plans);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}

void plans_failed(struct plans *plans, struct planned *planned)
{
    pthread_mutex_lock(&plans->lock);
    for (int i = 0; i < PLANS_KEPT; i++)
        if (plans->plan[i] == planned)
            drop(plans, i);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}

void plans_put(struct plans *plans, struct planned *planned)
{
    pthread_mutex_lock(&plans->lock);
    planned->references--;
    make_room(plans);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}
