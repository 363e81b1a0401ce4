#include "fs/base/thread.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { PROCESSORS_MOST = 1 << 20 };

int thread_create(pthread_t *thread, const char *name, void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = -pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_setname_np(*thread, name);
    return error;
}

int threads_start(pthread_t *thread, int most, const char *name, void *(*body)(void *), void *argument)
{
    int started = 0;
    while (started < most && thread_create(&thread[started], name, body, argument) == 0)
        started++;
    return started;
}

void thread_stop(pthread_t thread, pthread_mutex_t *lock, pthread_cond_t *changed, bool *stop)
{
    pthread_mutex_lock(lock);
    *stop = true;
    pthread_cond_signal(changed);
    pthread_mutex_unlock(lock);
    pthread_join(thread, NULL);
}

void threads_join(const pthread_t *thread, int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}

void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec until = {(time_t)(deadline / SECOND), (long)(deadline % SECOND)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

unsigned thread_number(void)
{
    static atomic_uint threads;
    static _Thread_local unsigned number; /* from 1 */
    if (!number)
        number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return number - 1;
}

void thread_set_patient(bool patient)
{
    static _Thread_local bool is_patient;
    int before = is_patient ? SCHED_BATCH : SCHED_OTHER, after = patient ? SCHED_BATCH : SCHED_OTHER;
    if (before != after && sched_getscheduler(0) == before && !sched_setscheduler(0, after, &(struct sched_param){0}))
        is_patient = patient;
}

/* The kernel rejects a mask that is shorter than its own, without saying how long that is. */
unsigned processors_count(void)
{
    for (int room = CPU_SETSIZE; room <= PROCESSORS_MOST; room *= 2) {
        CLEANUP_FREE cpu_set_t *set = CPU_ALLOC((size_t)room);
        size_t n = CPU_ALLOC_SIZE((size_t)room);
        if (set && sched_getaffinity(0, n, set) == 0) {
            int count = CPU_COUNT_S(n, set);
            return count > 0 ? (unsigned)count : 1;
        }
        if (!set || errno != EINVAL)
            return 1;
    }
    return 1;
}
