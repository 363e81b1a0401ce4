/* Threads, condition variables with deadlines, and what is kept once a thread, or once a few, so that threads on many
 * cores do not write to the same cache line. */
#ifndef FS_BASE_THREAD_H
#define FS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREAD_STRIPES = 16, CACHE_LINE = 64 };

/* Every signal is blocked in the new thread: signals are the main thread's. `name` is shown by ps, at most 15 bytes. */
int thread_create(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);

/* Up to `most` threads with one body and argument. Returns how many could be started. */
int threads_start(pthread_t *thread, int most, const char *name, void *(*body)(void *), void *argument);
void threads_join(const pthread_t *thread, int count);

unsigned processors_count(void); /* that this process may use; at least 1 */

/* A condition variable that waits until a time of clock_now(). False: that has come. */
void cond_init(pthread_cond_t *cond);
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline);

/* 0, 1, 2…: in the order in which threads first ask. */
unsigned thread_number(void);

/* Which of THREAD_STRIPES is this thread's, shared with others when there are many. */
static inline unsigned thread_stripe(void)
{
    return thread_number() % THREAD_STRIPES;
}

#endif
