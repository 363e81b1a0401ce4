/* A clock that the test moves: what happens after a time happens when the test says so, on any machine.
 *
 * In the program that includes this header, it replaces CLOCK_MONOTONIC and the waits of condition variables until a
 * time of that clock. The clock runs as the machine's does until clock_stand. Then only clock_add moves it, until
 * clock_run. It never goes back. While it stands, waits wake up every 2 ms, as POSIX allows, and look at it.
 *
 * Waits until a time of CLOCK_REALTIME, which only libraries have, are passed on to the C library: no machine has run
 * for as long as that clock counts. ThreadSanitizer must not see them, as it does not see the locks of libraries. */
#ifndef TESTS_FS_BASE_MOVED_CLOCK_H
#define TESTS_FS_BASE_MOVED_CLOCK_H

#include "fs/base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_SINCE_1970 (UINT64_C(1000000000) * SECOND)

static struct {
    pthread_mutex_t lock;
    uint64_t stands; /* lock: what it shows; 0: it runs */
    uint64_t ahead;  /* lock: of the machine's clock, while it runs */
} moved_clock = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline uint64_t clock_machine(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_shown(void) /* the caller holds the lock */
{
    return moved_clock.stands ? moved_clock.stands : clock_machine() + moved_clock.ahead;
}

static inline void clock_stand(void)
{
    pthread_mutex_lock(&moved_clock.lock);
    moved_clock.stands = clock_shown();
    pthread_mutex_unlock(&moved_clock.lock);
}

static inline void clock_add(uint64_t nanoseconds)
{
    pthread_mutex_lock(&moved_clock.lock);
    *(moved_clock.stands ? &moved_clock.stands : &moved_clock.ahead) += nanoseconds;
    pthread_mutex_unlock(&moved_clock.lock);
}

static inline void clock_run(void)
{
    pthread_mutex_lock(&moved_clock.lock);
    moved_clock.ahead = clock_shown() - clock_machine();
    moved_clock.stands = 0;
    pthread_mutex_unlock(&moved_clock.lock);
}

static int (*wait_of_library)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

__attribute__((constructor)) static void find_wait_of_library(void)
{
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    wait_of_library = (__typeof__(wait_of_library))dlsym(library, "pthread_cond_clockwait");
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, t);
    pthread_mutex_lock(&moved_clock.lock);
    uint64_t now = clock_shown();
    pthread_mutex_unlock(&moved_clock.lock);
    *t = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    uint64_t deadline = (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;
    if (deadline > CLOCK_SINCE_1970)
        return wait_of_library(cond, lock, CLOCK_REALTIME, until);
    pthread_mutex_lock(&moved_clock.lock);
    uint64_t now = clock_shown();
    uint64_t left = now >= deadline ? 0 : moved_clock.stands ? 2 * MILLISECOND : deadline - now;
    pthread_mutex_unlock(&moved_clock.lock);
    if (!left)
        return ETIMEDOUT;
    uint64_t end = clock_machine() + left;
    pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC,
                           &(struct timespec){(time_t)(end / SECOND), (long)(end % SECOND)});
    return clock_now() >= deadline ? ETIMEDOUT : 0;
}

#endif
