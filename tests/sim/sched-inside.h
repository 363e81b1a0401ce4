/* Shared by the files of the scheduler. */
#ifndef TESTS_SIM_SCHED_INSIDE_H
#define TESTS_SIM_SCHED_INSIDE_H

#include "tests/sim/sched.h"
#include "tests/sim/sched-switch.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>

enum { SIM_NAME = 24, STACK_BYTES = 512 << 10 };

#define SIM_SECOND UINT64_C(1000000000)
#define SIM_START UINT64_C(1000000000000) /* the time at which a run begins */

/* A function that stands in the place of the C library's, or of the product's, and the one that it replaces. */
#define WRAP(type, name, ...)                                                                                          \
    type __real_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__)

struct sim_process {
    struct sim_process *next;
    unsigned node;
    int id; /* from FIRST_ID */
    bool stopped, dead;
    int64_t clock_step;
    char name[SIM_NAME];
};

/* `state` is WAITING from sim_block until another thread, or the deadline, makes the thread runnable again.
 *
 * A waiting thread waits for exactly one thing: `object` (a mutex, a condition variable, a thread to join; the thread
 * that changes it calls sim_wake), `ready`, `fds`, or nothing but the deadline. */
struct sim_thread {
    enum { RUNNABLE, WAITING, FINISHED } state;
    bool late;     /* the deadline ended the wait */
    bool sluggish; /* is chosen rarely in this run */
    bool detached;
    struct sim_process *home; /* whose thread it is */
    uint64_t deadline;
    bool (*ready)(void *);
    void *argument;
    const void *object;
    struct pollfd *fds;
    nfds_t count;
    const char *what;             /* what it waits for, for the report */
    struct sim_process *process;  /* as which it acts */
    struct sim_thread *report_to; /* print your stack and hand back */
    struct sim_thread *next;      /* of those that nobody has joined, or can be used again */
    struct hand hand;
    pthread_t pthread;
    unsigned number;
    size_t index; /* in sim.thread */
    char name[SIM_NAME];
    void *(*body)(void *);
    void *body_argument, *result;
};

/* What a thread waits for, where it can be searched for quickly. Of a thread that runs: SIM_NEVER, NULL. */
struct sim_wait {
    uint64_t deadline;
    const void *object;
};

struct sim {
    bool running;
    uint64_t seed, now, switches, digest;
    unsigned preempt;           /* of 1,024 switching points that need not hand over, how many do */
    struct sim_thread **thread; /* by number; those that finished leave */
    struct sim_wait *wait;      /* of each */
    size_t threads, room;
    struct sim_thread *current;  /* sim_self of the one that runs */
    struct sim_process *process; /* the youngest first */
    bool changed;                /* a descriptor, since descriptors were last polled */
};

extern struct sim sim;
extern _Thread_local struct sim_thread *sim_self; /* NULL: not a simulated thread; wraps then call the real function */

static inline bool sim_is_simulated(void)
{
    return sim_self && sim.running;
}

/* sched.c */
void sim_yield(void);             /* a switching point that always draws */
void sim_block(const char *what); /* the fields of sim_self say until when and for what; they are reset after it */
void sim_wake(struct sim_thread *thread);
void sim_wake_all(const void *object); /* those that wait for it */
void sim_sleep_until(uint64_t deadline, const char *what);
bool sim_wait_fds(struct pollfd *fds, nfds_t count, uint64_t deadline, const char *what);
/* `used`: one that has ended, to run again; or NULL. */
void *sim_allocate(void *was, size_t n); /* as realloc; for no process */
struct sim_thread *sim_thread_new(const char *name, struct sim_thread *used);
void sim_thread_end(void); /* the calling thread has finished; it returns when it is used again */
void sim_thread_remove(struct sim_thread *thread);

/* sched-process.c */
struct sim_process *sim_process_find(int id);

/* sched-report.c */
void sim_history_begin(bool print);
void sim_logv(const char *format, va_list args);
void sim_report_stack(void); /* of the calling thread */
void sim_watchdog_begin(void);

/* wrap-threads.c: locks of these threads are free. */
void sim_locks_drop(const struct sim_process *dead);
const struct sim_thread *sim_lock_owner(const void *lock); /* NULL: free, or no lock */

/* wrap-events.c */
short fd_ready(int fd, short events); /* what poll says */

/* wrap-files.c */
void sim_files_close(struct sim_process *dead);

#endif
