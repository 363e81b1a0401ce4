/* Threads, mutexes and condition variables; the real ones are not used.
 *
 * A table has the locked locks, by address. A thread that wants a lock waits until it is free and tries again, so that
 * the seed decides which thread gets it. Condition variables have no state: a signal wakes one waiting thread, drawn by
 * the seed, and a few waits end by themselves, as POSIX allows. Their deadlines use CLOCK_MONOTONIC (cond_init). */
#include "tests/sim/sched-inside.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LOCKS = 4096,
    SPURIOUS_ONE_OF = 128,
    GUARD_INSTALL = 102, /* MADV_GUARD_INSTALL of Linux 6.13: a fork need not copy two mappings per stack */
};

/* --- locks --- */

struct lock {
    const void *address; /* NULL: a free place */
    const struct sim_thread *owner;
};

static struct lock lock_table[LOCKS];
static unsigned held, mutex_waiters, cond_waiters;

static size_t home_of(const void *address)
{
    return (size_t)((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

/* Its place, or the free one where it would be. */
static size_t lock_find(const void *address)
{
    size_t i = home_of(address);
    while (lock_table[i].address && lock_table[i].address != address)
        i = (i + 1) % LOCKS;
    return i;
}

/* Those behind it move up, so that searches need no marks of what was removed. */
static void lock_remove(size_t hole)
{
    for (size_t i = (hole + 1) % LOCKS; lock_table[i].address; i = (i + 1) % LOCKS)
        if ((i - home_of(lock_table[i].address)) % LOCKS >= (i - hole) % LOCKS) {
            lock_table[hole] = lock_table[i];
            hole = i;
        }
    lock_table[hole].address = NULL;
    held--;
}

const struct sim_thread *sim_lock_owner(const void *lock)
{
    size_t i = lock_find(lock);
    return lock_table[i].address ? lock_table[i].owner : NULL;
}

void sim_locks_drop(const struct sim_process *dead)
{
    for (size_t i = 0; i < LOCKS; i++)
        while (lock_table[i].address && lock_table[i].owner->home == dead) {
            sim_wake_all(lock_table[i].address);
            lock_remove(i);
        }
}

static void lock_take(pthread_mutex_t *mutex)
{
    for (;;) {
        size_t i = lock_find(mutex);
        if (!lock_table[i].address) {
            if (++held == LOCKS)
                sim_fail("%u locks are held", held);
            lock_table[i] = (struct lock){mutex, sim_self};
            return;
        }
        if (lock_table[i].owner == sim_self)
            sim_fail("a thread locks a mutex that it holds");
        sim_self->object = mutex;
        mutex_waiters++;
        sim_block("a mutex");
        mutex_waiters--;
    }
}

static void lock_give(pthread_mutex_t *mutex)
{
    size_t i = lock_find(mutex);
    if (!lock_table[i].address || lock_table[i].owner != sim_self)
        sim_fail("a thread unlocks a mutex that it does not hold");
    lock_remove(i);
    if (mutex_waiters)
        sim_wake_all(mutex);
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
    if (!sim_is_simulated())
        return __real_pthread_mutex_lock(mutex);
    sim_pause("to lock a mutex");
    lock_take(mutex);
    return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
    if (!sim_is_simulated())
        return __real_pthread_mutex_unlock(mutex);
    lock_give(mutex);
    sim_pause("after a mutex");
    return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *mutex)
{
    if (!sim_is_simulated())
        return __real_pthread_mutex_destroy(mutex);
    if (sim_lock_owner(mutex))
        sim_fail("a mutex is destroyed that %s holds", sim_lock_owner(mutex)->name);
    return 0;
}

/* --- condition variables --- */

/* False: the deadline has come. */
static bool cond_await(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline)
{
    struct sim_thread *self = sim_self;
    lock_give(mutex);
    self->object = cond;
    self->deadline = deadline;
    self->late = false;
    cond_waiters++;
    if (sim_random(SPURIOUS_ONE_OF) == 0)
        sim_pause("a condition variable, for nothing");
    else
        sim_block("a condition variable");
    cond_waiters--;
    bool late = self->late;
    self->object = NULL;
    self->deadline = SIM_NEVER;
    lock_take(mutex);
    return !late;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (!sim_is_simulated())
        return __real_pthread_cond_wait(cond, mutex);
    cond_await(cond, mutex, SIM_NEVER);
    return 0;
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!sim_is_simulated())
        return __real_pthread_cond_timedwait(cond, mutex, until);
    return cond_await(cond, mutex, (uint64_t)until->tv_sec * SIM_SECOND + (uint64_t)until->tv_nsec) ? 0 : ETIMEDOUT;
}

WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
    if (!sim_is_simulated())
        return __real_pthread_cond_signal(cond);
    struct sim_thread *chosen = NULL;
    uint64_t count = 0;
    for (size_t i = 0; cond_waiters && i < sim.threads; i++)
        if (sim.wait[i].object == cond && sim_random(++count) == 0)
            chosen = sim.thread[i];
    if (chosen)
        sim_wake(chosen);
    sim_pause("after a signal");
    return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
    if (!sim_is_simulated())
        return __real_pthread_cond_broadcast(cond);
    if (cond_waiters)
        sim_wake_all(cond);
    sim_pause("after a broadcast");
    return 0;
}

WRAP(int, pthread_cond_destroy, pthread_cond_t *cond)
{
    return sim_is_simulated() ? 0 : __real_pthread_cond_destroy(cond);
}

/* --- threads --- */

/* Signals are the harness's alone; and a mask would be that of the kernel's thread, which others share. */
WRAP(int, pthread_sigmask, int how, const sigset_t *set, sigset_t *before)
{
    if (!sim_is_simulated())
        return __real_pthread_sigmask(how, set, before);
    if (before)
        sigemptyset(before);
    return 0;
}

/* A thread that has ended and is joined waits for its next body: to make one costs 100 switches. So _Thread_local
 * variables may have a value when a thread begins. */
static struct sim_thread *unjoined, *unused;

static struct sim_thread **unjoined_find(pthread_t thread)
{
    struct sim_thread **at = &unjoined;
    while (*at && !pthread_equal((*at)->pthread, thread))
        at = &(*at)->next;
    return at;
}

static void put_away(struct sim_thread *t)
{
    t->next = unused;
    unused = t;
}

static void run_body(void)
{
    for (;;) {
        sim_self->result = sim_self->body(sim_self->body_argument);
        if (sim_self->detached)
            put_away(sim_self);
        sim_thread_end();
    }
}

/* The kernel sends no signal to it, since another thread may run on its stack. */
static void *begin_thread(void *argument)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGUSR2);
    __real_pthread_sigmask(SIG_SETMASK, &all, NULL);
    sim_self = argument;
    hand_run(&sim_self->hand, run_body);
    return NULL;
}

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Each has a page below its stack that nobody may touch. */
void sim_prepare(unsigned threads)
{
    pthread_attr_t attributes;
    size_t guard = (size_t)sysconf(_SC_PAGESIZE), size = STACK_BYTES;
    if (!hand_by_stack())
        return;
    char *at = mmap(NULL, threads * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return;
    pthread_attr_init(&attributes);
    for (unsigned i = 0; i < threads; i++, at += size) {
        struct sim_thread *t = calloc(1, sizeof *t);
        if (madvise(at, guard, GUARD_INSTALL))
            mprotect(at, guard, PROT_NONE);
        pthread_attr_setstack(&attributes, at + guard, size - guard);
        if (!t || __real_pthread_create(&t->pthread, &attributes, begin_thread, t))
            abort();
        hand_await(&t->hand);
        put_away(t);
    }
    pthread_attr_destroy(&attributes);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    if (!sim_is_simulated())
        return __real_pthread_create(thread, attributes, body, argument);
    struct sim_thread *used = unused;
    unused = used ? used->next : NULL;
    struct sim_thread *t = sim_thread_new("thread", used);
    t->body = body;
    t->body_argument = argument;
    int error = used ? 0 : __real_pthread_create(&t->pthread, attributes, begin_thread, t);
    if (error)
        sim_fail("pthread_create: error %d", error);
    t->next = unjoined;
    unjoined = t;
    *thread = t->pthread;
    sim_pause("after the start of a thread");
    return 0;
}

/* A thread of a killed process never ends. */
WRAP(int, pthread_join, pthread_t thread, void **result)
{
    if (!sim_is_simulated())
        return __real_pthread_join(thread, result);
    struct sim_thread *t = *unjoined_find(thread);
    if (!t)
        sim_fail("a thread is joined that is none");
    while (t->state != FINISHED) {
        sim_self->object = t;
        sim_block("a thread to end");
    }
    *unjoined_find(thread) = t->next;
    if (result)
        *result = t->result;
    put_away(t);
    return 0;
}

WRAP(int, pthread_detach, pthread_t thread)
{
    if (!sim_is_simulated())
        return __real_pthread_detach(thread);
    struct sim_thread **at = unjoined_find(thread), *t = *at;
    if (!t)
        sim_fail("a thread is detached that is none");
    *at = t->next;
    t->detached = true;
    if (t->state == FINISHED)
        put_away(t);
    return 0;
}

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
    if (!sim_is_simulated())
        return __real_pthread_setname_np(thread, name);
    struct sim_thread *t = *unjoined_find(thread);
    if (t)
        snprintf(t->name, sizeof t->name, "%s", name);
    return 0;
}
