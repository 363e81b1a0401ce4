/* Removes what a mount leaves: mounts, sockets, folders. All of this can block on a mount that hangs, so each function
 * runs in a short-lived child, which has nothing of the mount open. */
#ifndef FS_KEEPER_TAKEDOWN_H
#define FS_KEEPER_TAKEDOWN_H

#include "fs/attach/config.h"

enum takedown {
    TAKEDOWN_LIVE,
    TAKEDOWN_ENDED, /* the data session has ended: another mount may be there by now */
    TAKEDOWN_ABORT, /* first abort both connections, so that every request in them fails */
};
/* Unmount both lazily: processes inside stay inside; the sessions end when they leave. Returns the child, or -1. */
pid_t takedown_start(const struct mount_config *config, enum takedown how);
/* Start TAKEDOWN_LIVE; takedown_again, called regularly, starts it again if there was no room for a process. */
void takedown_leave(const struct mount_config *config);
void takedown_again(const struct mount_config *config);
void takedown_await(pid_t child); /* for up to 20 s; then it is killed */
/* `dealfs umount` asks for it by SIGUSR1 where only dealfs-mounter may unmount. */
void takedown_listen(void);
bool takedown_asked(void);
/* Is the data mount visible here, or in the mount namespace of any accessible process? Processes inside an invisible
 * mount may still use it. The child exits with 1 if it is not visible. */
pid_t takedown_look(const struct mount_config *config);
/* Removes the RAM tier's folder, the courier's socket and the control mount's place. Waits for its child. */
void takedown_files(const struct mount_config *config);

#endif
