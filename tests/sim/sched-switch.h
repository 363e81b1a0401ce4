/* Hand the processor from one thread to another, of which exactly one runs.
 *
 * In general each thread sleeps on a futex of its own, and handing over is a wake and a sleep: two system calls and a
 * switch by the kernel. On x86-64 there is a way that is 25 times faster: the kernel thread that called hand_begin
 * runs all threads. It switches the stack and the register FS, which points to the thread's own memory (errno,
 * _Thread_local, pthread_self), so that code cannot tell the difference; only gettid would. Where the kernel does not
 * let programs write FS, a system call does it. The kernel's threads of the others sleep for good. DEALFS_SIM_FUTEX=1
 * chooses the first way, for gdb. */
#ifndef TESTS_SIM_SCHED_SWITCH_H
#define TESTS_SIM_SCHED_SWITCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct hand {
    atomic_int go;     /* futex: this thread's turn */
    atomic_int parked; /* futex: the thread can be run by its stack */
    bool started;      /* it has run before */
    void *stack;       /* where it was interrupted */
    void *memory;      /* FS */
    void (*body)(void);
    pid_t id; /* of its kernel thread */
};

/* Whether threads run by their stacks alone. Then threads that were made before a fork can run after it. */
bool hand_by_stack(void);
void hand_await(struct hand *other); /* until it can be run by its stack */
void hand_begin(struct hand *mine);  /* of the first thread */
/* In a new thread: wait for the first turn and run body, which does not return. */
void hand_run(struct hand *mine, void (*body)(void));
void hand_over(struct hand *from, struct hand *to);
void hand_signal(const struct hand *running, int signal);

#endif
