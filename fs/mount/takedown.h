/* Take away what a mount leaves: mounts, sockets, folders. Everything here can block on a mount that hangs, so it is
 * called by short-lived children of the keeper only. */
#ifndef FS_MOUNT_TAKEDOWN_H
#define FS_MOUNT_TAKEDOWN_H

#include "fs/mount/config.h"
#include "fs/mount/handover.h"

/* Note the device numbers of the two mounts in the shared memory, so that nobody else's is ever taken away. */
void takedown_learn(const struct mount_config *config, struct handover *handover);
/* Both mounts, lazily: whoever is inside stays inside. The end of the sessions follows when they leave. */
void takedown_unmount(const struct mount_config *config, const struct handover *handover);
/* End both connections now: every request in them fails. */
void takedown_abort(const struct handover *handover);
/* The RAM tier's folder, the courier's socket and the control mount's place. */
void takedown_files(const struct mount_config *config);

#endif
