/* Watch a process that may be anybody's child: the keeper and the server watch each other. */
#ifndef FS_MOUNT_PROCESS_H
#define FS_MOUNT_PROCESS_H

#include <stdbool.h>
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
/* All of it, every thread; also when nobody has reaped it, as the init of many a container never does. */
bool process_is_gone(pid_t id);

#endif
