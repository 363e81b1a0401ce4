/* Watches a process that may be anybody's child: keeper and server watch each other. Also what a process gives up
 * before it becomes another one. */
#ifndef FS_BASE_PROCESS_H
#define FS_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process counts as dead when its leader is. Other threads may linger in the kernel, unkillable until somebody
 * answers what they wait for; until then neither a pidfd nor wait reports the end. */
struct process {
    pid_t id;
    int pidfd; /* readable when all threads have ended */
    int stat;  /* /proc/ID/stat, or -1 */
};

int process_watch(pid_t id, struct process *process); /* 0, -ESRCH: no such process */
void process_forget(struct process *process);
bool process_is_dead(const struct process *process);
bool process_is_stopped(const struct process *process); /* by a signal, not by a debugger */
bool process_is_traced(pid_t id);                       /* a debugger is attached */
/* Nanoseconds that its leader has run on a processor. -ENOENT: unknown. */
int process_run_time(const struct process *process, uint64_t *time);
/* Bit N - 1 for signal N, pending for the thread or its process; 0 if unknown. */
uint64_t process_pending_signals(pid_t thread);
/* Will this thread die as soon as it leaves the kernel? Unseen: it has ended, is hidden, or is in another pid
 * namespace. */
enum thread_fate { THREAD_LIVES, THREAD_DIES, THREAD_UNSEEN };
enum thread_fate process_thread_fate(pid_t thread);
/* True when every thread has ended, even if nobody has reaped it, as in many containers. */
bool process_is_gone(pid_t id);
/* What an error of reading /proc/PID means: 0 if that process has ended or may not be examined. Otherwise `error`, for
 * example of a lack of memory or descriptors: the process may be alive. */
int process_look_error(int error);

/* Sends to this process, never to another one that has its number by now. */
int process_signal(const struct process *process, int signal);
int process_kill(const struct process *process);
bool process_belongs_to(const struct process *process, uid_t uid);
/* The same: 0; -ESRCH: it has ended, or is another user's; else -errno: unknown. */
int process_check_owner(const struct process *process, uid_t uid);

/* Wait for a child, for this many seconds in all. 0, or -errno. -ETIMEDOUT: it was killed, but lives on if it hangs in
 * the kernel. */
int process_await_child(pid_t child, int seconds, int *status);
/* Lets a child do what may hang, or with other rights. The result of `work`, 0 or -errno; -ETIMEDOUT: it took too
 * long. */
int process_do_in_child(int (*work)(const void *user), const void *user, int seconds);
/* What tells the namespace of process ids of this process from others; 0: the kernel does not say. */
uint64_t process_namespace(void);

/* Ignores the signals with which people and shells end programs, also SIGPIPE. */
void process_ignore_signals(void);

/* Become a user, with the user's groups. Does nothing if this process is not root. */
int process_become(uid_t uid, gid_t gid);
/* Before executing a program as the user, who can read its variables: keeps only variables for dealfs, its libraries
 * and the locale; HOME and USER become the user's. No other thread may run. */
int process_leave_environment(uid_t uid);
/* process_become calls it for its own thread; a program with threads calls it before it creates them. */
int process_leave_keyring(void);
/* Like process_become, but may still mount and pass any directory: to access names in a FUSE mount that admits only
 * its user. */
int process_become_mounter(uid_t uid, gid_t gid);
/* Processes that are started from here on are no launcher's rank, and may use every processor that the control group
 * allows: mpirun pins a process to a core, and children inherit that. */
void process_leave_launcher(void);
void process_reset_signals(void); /* none is ignored, handled or blocked */

#endif
