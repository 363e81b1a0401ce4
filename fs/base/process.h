/* Watch a process that may be anybody's child: the keeper and the server watch each other. And what a process drops
 * before it becomes another one. */
#ifndef FS_BASE_PROCESS_H
#define FS_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process counts as dead when its leader is: other threads of it may linger in the kernel, unkillable until somebody
 * answers what they wait for, and until then no pidfd and no wait tells of its end. */
struct process {
    pid_t id;
    int pidfd; /* readable when all of it is gone */
    int stat;  /* /proc/ID/stat, or -1 */
};

int process_watch(pid_t id, struct process *process); /* 0, -ESRCH: no such process */
void process_forget(struct process *process);
bool process_is_dead(const struct process *process);
bool process_is_stopped(const struct process *process); /* by a signal; not by a debugger */
bool process_is_traced(pid_t id);                       /* a debugger has it */
/* Nanoseconds that its leader has been on a processor. -ENOENT: the kernel does not say. */
int process_run_time(const struct process *process, uint64_t *time);
/* The bit N - 1 for signal N, of the thread alone or of all its process; 0 also where that cannot be seen. */
uint64_t process_pending_signals(pid_t thread);
/* Will this thread die as soon as it leaves the kernel? Unseen: it has ended, is hidden, or of another pid
 * namespace. */
enum thread_fate { THREAD_LIVES, THREAD_DIES, THREAD_UNSEEN };
enum thread_fate process_thread_fate(pid_t thread);
/* All of it, every thread; also when nobody has reaped it, as the init of many a container never does. */
bool process_is_gone(pid_t id);

/* This one, and no other that has its number by now. */
int process_signal(const struct process *process, int signal);
int process_kill(const struct process *process);
bool process_belongs_to(const struct process *process, uid_t uid);

/* Wait for a child at most so long. 0, or -ETIMEDOUT: it was killed, but lives on if it hangs in the kernel. */
int process_await_child(pid_t child, int seconds, int *status);
/* What tells the namespace of process ids of this process from others; 0: the kernel does not say. */
uint64_t process_namespace(void);

/* Of this one: those that people and their shells end programs with. Also SIGPIPE. */
void process_ignore_signals(void);

/* To go on as a user, with the groups that the system knows of it; what is not root is left as it is. */
int process_become(uid_t uid, gid_t gid);
/* Before a program of the user's is executed, who can read its variables: only those stay that dealfs, its libraries
 * and the locale use; HOME and USER are the user's. No other thread may run. */
int process_leave_environment(uid_t uid);
/* process_become does so, for its own thread: a program with threads does it before it makes them. */
int process_leave_keyring(void);
/* The same as process_become, but that root may still mount and pass any directory: to name what lies in a FUSE
 * mount that lets nobody in but its user. */
int process_become_mounter(uid_t uid, gid_t gid);
/* What is started from here on is nobody's rank any more, and may use every processor that the control group has:
 * mpirun pins a process to a core, and children inherit that. */
void process_leave_launcher(void);
void process_reset_signals(void); /* none ignored, handled or blocked */

#endif
