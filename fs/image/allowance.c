/* Implements allowance.h. Threads: any. One of those that wait is the first. Only it takes bytes, so that a large
 * request gets its turn although small ones would fit. */
#include "fs/image/allowance.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>

enum { LOOK_EVERY_MS = 50 };

void allowance_init(struct allowance *a, uint64_t most)
{
    *a = (struct allowance){.most = most};
    pthread_mutex_init(&a->lock, NULL);
    cond_init(&a->changed);
}

void allowance_fini(struct allowance *a)
{
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
}

/* The caller holds the lock, which is released while it waits. */
static int allowance_wait(struct allowance *a, bool (*gave_up)(void *user), void *user)
{
    cond_wait_until(&a->changed, &a->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND);
    pthread_mutex_unlock(&a->lock);
    bool gone = gave_up && gave_up(user);
    pthread_mutex_lock(&a->lock);
    return gone ? -EINTR : 0;
}

static bool allowance_has(const struct allowance *a, uint64_t bytes)
{
    return a->used == 0 || (a->used <= a->most && bytes <= a->most - a->used);
}

int allowance_take(struct allowance *a, uint64_t bytes, bool (*gave_up)(void *user), void *user)
{
    int error = 0;
    LOCK_SCOPE(&a->lock);
    while (a->first && !error)
        error = allowance_wait(a, gave_up, user);
    if (error)
        return error;
    a->first = true;
    while (!allowance_has(a, bytes) && !error)
        error = allowance_wait(a, gave_up, user);
    a->first = false;
    a->used += error ? 0 : bytes;
    pthread_cond_broadcast(&a->changed);
    return error;
}

void allowance_give(struct allowance *a, uint64_t bytes)
{
    LOCK_SCOPE(&a->lock);
    a->used -= bytes;
    pthread_cond_broadcast(&a->changed);
}
