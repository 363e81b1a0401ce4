/* Threads, condition variables with deadlines, and data per thread or per few threads, so that threads on many cores do
 * not write to the same cache line. */
#ifndef FS_BASE_THREAD_H
#define FS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREAD_STRIPES = 16, CACHE_LINE = 64 };

/* Every signal is blocked in the new thread: the main thread handles signals. ps shows `name`, at most 15 bytes. */
int thread_create(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);

/* Starts up to `most` threads with one body and argument. Returns how many started. */
int threads_start(pthread_t *thread, int most, const char *name, void *(*body)(void *), void *argument);
/* Sets `stop` under the lock, signals, and joins. */
void thread_stop(pthread_t thread, pthread_mutex_t *lock, pthread_cond_t *changed, bool *stop);
void threads_join(const pthread_t *thread, int count);

/* A patient thread does not preempt another one when it is woken (SCHED_BATCH). Nothing changes if the user has chosen
 * another scheduling policy. */
void thread_set_patient(bool patient);

unsigned processors_count(void); /* available to this process; at least 1 */

/* A condition variable whose waits end at a time of clock_now(). False: the time has come. */
void cond_init(pthread_cond_t *cond);
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline);

/* 0, 1, 2…: in the order of first calls. */
unsigned thread_number(void);

/* This thread's stripe; with many threads, some share one. */
static inline unsigned thread_stripe(void)
{
    return thread_number() % THREAD_STRIPES;
}

#endif
