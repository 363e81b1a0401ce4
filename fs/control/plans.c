/* The few plans that are kept. */
#include "fs/control/plans.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <string.h>

enum { LOOK_EVERY_MS = 100 }; /* whether who waits has given up */

void plans_init(struct plans *plans, uint64_t most)
{
    *plans = (struct plans){.most = most};
    pthread_mutex_init(&plans->lock, NULL);
    cond_init(&plans->changed);
}

static void planned_destroy(struct planned *planned)
{
    if (!planned)
        return;
    plan_memory_fini(&planned->memory);
    free(planned);
}

void plans_fini(struct plans *plans)
{
    for (int i = 0; i < PLANS_KEPT; i++)
        planned_destroy(plans->plan[i]);
    pthread_cond_destroy(&plans->changed);
    pthread_mutex_destroy(&plans->lock);
}

/* Of one in the making nothing is known: it is its maker's alone. Those in files have a budget of their own. */
static uint64_t planned_bytes(const struct planned *planned)
{
    return planned->ready && !planned->memory.file.bytes
               ? plan_shape_place(&planned->shape, planned->shape.ranks) * sizeof *planned->lists
               : 0;
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

static void drop_plan(struct plans *plans, int place)
{
    planned_destroy(plans->plan[place]);
    plans->plan[place] = NULL;
}

static void keep_to_most(struct plans *plans)
{
    for (;;) {
        uint64_t bytes = 0;
        for (int i = 0; i < PLANS_KEPT; i++)
            bytes += plans->plan[i] ? planned_bytes(plans->plan[i]) : 0;
        int victim = bytes > plans->most ? find_victim(plans, true) : -1;
        if (victim < 0)
            return;
        drop_plan(plans, victim);
    }
}

static struct planned *find_plan(const struct plans *plans, const struct digest *key)
{
    for (int i = 0; i < PLANS_KEPT; i++)
        if (plans->plan[i] && memcmp(&plans->plan[i]->key, key, sizeof *key) == 0)
            return plans->plan[i];
    return NULL;
}

/* 0: there is no place for it yet. */
static int begin_plan(struct plans *plans, const struct digest *key, struct planned **planned)
{
    int place = find_victim(plans, false);
    struct planned *made = place < 0 ? NULL : calloc(1, sizeof *made);
    if (!made)
        return place < 0 ? 0 : -ENOMEM;
    made->key = *key;
    made->references = 1;
    made->used = ++plans->asked;
    drop_plan(plans, place);
    plans->plan[place] = made;
    *planned = made;
    return 1;
}

/* The lock is not held while the asker is asked: that reads a file. */
static bool asker_left(struct plans *plans, const struct asker *asker)
{
    bool gone;
    pthread_mutex_unlock(&plans->lock);
    gone = asker_gave_up(asker);
    pthread_mutex_lock(&plans->lock);
    return gone;
}

/* 0 when there is one that is ready, 1 when the caller is to make it, -EAGAIN when neither is so yet. */
static int try_get(struct plans *plans, const struct digest *key, struct planned **planned)
{
    struct planned *found = find_plan(plans, key);
    if (!found) {
        int begun = begin_plan(plans, key, planned);
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
    while ((result = try_get(plans, key, planned)) == -EAGAIN) {
        cond_wait_until(&plans->changed, &plans->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND);
        if (asker_left(plans, asker)) {
            result = -EINTR;
            break;
        }
    }
    pthread_mutex_unlock(&plans->lock);
    return result;
}

void plans_made(struct plans *plans, struct planned *planned)
{
    charge_keep(&planned->memory.charge);
    pthread_mutex_lock(&plans->lock);
    planned->ready = true;
    plans->made++;
    plans->last = planned->summary;
    keep_to_most(plans);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}

void plans_failed(struct plans *plans, struct planned *planned)
{
    pthread_mutex_lock(&plans->lock);
    for (int i = 0; i < PLANS_KEPT; i++)
        if (plans->plan[i] == planned)
            drop_plan(plans, i);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}

void plans_put(struct plans *plans, struct planned *planned)
{
    pthread_mutex_lock(&plans->lock);
    planned->references--;
    keep_to_most(plans);
    pthread_cond_broadcast(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
}

struct planned *plans_find(struct plans *plans, const struct digest *digest)
{
    struct planned *found = NULL;
    pthread_mutex_lock(&plans->lock);
    for (int i = 0; i < PLANS_KEPT && !found; i++) {
        struct planned *p = plans->plan[i];
        if (p && p->ready && memcmp(&p->summary.digest, digest, sizeof *digest) == 0)
            found = p;
    }
    if (found) {
        found->references++;
        found->used = ++plans->asked;
    }
    pthread_mutex_unlock(&plans->lock);
    return found;
}

bool plans_drop(struct plans *plans)
{
    pthread_mutex_lock(&plans->lock);
    int victim = find_victim(plans, true);
    if (victim >= 0) {
        drop_plan(plans, victim);
        pthread_cond_broadcast(&plans->changed);
    }
    pthread_mutex_unlock(&plans->lock);
    return victim >= 0;
}
