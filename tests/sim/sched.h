/* A deterministic scheduler: one thread runs at a time, and a seed decides which one is next.
 *
 * The running thread hands over at switching points: blocking calls, locks, and sim_pause. The files wrap-….c replace
 * these calls at link time (SIM_WRAPS in tests/local.mk). Time is virtual: each switching point takes a fraction of a
 * microsecond, and time jumps to the next deadline when no thread can run. When there is no deadline either, that is a
 * deadlock.
 *
 * A simulated process is a group of threads and descriptors in this one process. Threads and descriptors belong to the
 * simulated process of the thread that made them. The same seed gives the same history, byte for byte.
 *
 * The functions are for simulated threads: the caller of sim_begin, and all threads that simulated threads create. */
#ifndef TESTS_SIM_SCHED_H
#define TESTS_SIM_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX

enum { SIM_FOUND = 3 }; /* the exit status after sim_fail */

/* Seconds of real time in which a thread has to reach a switching point; otherwise that is also a finding. */
extern unsigned sim_patience;

struct sim_process;

/* The C library's heap, for children that call sim_begin: call it before the first thread asks for memory. */
void sim_tune_memory(void);
/* Call it in the parent of children that call sim_begin: it makes this number of threads in advance, for its children.
 * A child has memory and stacks of them, which is enough where hand_by_stack holds; elsewhere nothing is made. */
void sim_prepare(unsigned threads);
/* Call it once, in a child that was forked for this seed. The caller becomes the thread "main" of node 0. With
 * `history` each line of history goes to stderr. */
void sim_begin(uint64_t seed, bool history);
/* Time is real again; threads that are left never run again. The caller should _exit soon. */
void sim_end(void);

/* A finding: print it with the time, the last lines of history, and what each thread waits for; exit with SIM_FOUND. */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* What each thread waits for, and where, to stderr. */
void sim_report(void);

uint64_t sim_random(uint64_t below); /* the one random generator of a run; 0 ≤ result < below */
uint64_t sim_now(void);              /* virtual nanoseconds: what clock_now returns */
void sim_clock_step(struct sim_process *process, int64_t nanoseconds); /* move CLOCK_REALTIME of a process */

/* A line of history: virtual time, process, thread. */
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t sim_digest(void);   /* of all switches and lines so far: equal for equal seeds */
uint64_t sim_switches(void); /* hand-overs from one thread to another so far */

struct sim_process *sim_process_new(unsigned node, const char *name);
void sim_process_enter(struct sim_process *process); /* the calling thread acts as this process from now on */
void sim_process_stop(struct sim_process *process);  /* as by SIGSTOP */
void sim_process_continue(struct sim_process *process);
/* Its threads never run again, its descriptors are closed, its locks are free. Killing one's own does not return. */
void sim_process_kill(struct sim_process *process);
bool sim_process_is_dead(const struct sim_process *process);
bool sim_process_is_stopped(const struct sim_process *process);
int sim_process_id(const struct sim_process *process); /* what getpid returns in it */
struct sim_process *sim_process_self(void);
unsigned sim_node(void); /* of the calling thread's process */

/* A switching point: another thread may run. */
void sim_pause(const char *why);
/* Wait until ready(argument) holds; false: the deadline (sim_now) passed first. `ready` is called often, by any
 * thread, and only looks. */
bool sim_wait(bool (*ready)(void *), void *argument, uint64_t deadline, const char *what);
/* The same without a deadline, where somebody calls sim_tell whenever `ready` may hold: it is not asked meanwhile. */
void sim_await(bool (*ready)(void *), void *argument, const void *about, const char *what);
void sim_tell(const void *about);

/* Left out of the history: a folder whose name no other run has. NULL: nothing. */
extern const char *sim_hidden;

extern volatile bool sim_allocates; /* what is allocated now is the scheduler's, and no process's */

/* A program may define these. A file was synced; a file got this name. */
void power_synced(int fd) __attribute__((weak));
void power_named(int directory, const char *path) __attribute__((weak));

#endif
