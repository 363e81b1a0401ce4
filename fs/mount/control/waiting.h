/* Does whoever asked still want the answer?
 *
 * The kernel passes an interrupt on for any signal, also for those that profilers, timers and runtimes send a hundred
 * times a second; giving up for these would make a long request never end. So the asker's pending signals are looked
 * at. */
#ifndef FS_MOUNT_CONTROL_WAITING_H
#define FS_MOUNT_CONTROL_WAITING_H

#include <stdbool.h>
#include <sys/types.h>

/* A signal that asks to end or to stop what is being done is pending for this thread. Where that cannot be seen
 * (another pid namespace): false. */
bool waiting_gave_up(pid_t thread);

#endif
