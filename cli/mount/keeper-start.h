/* Starts the keeper with all its descriptors, and waits until it reports that the mount is live. */
#ifndef CLI_MOUNT_KEEPER_START_H
#define CLI_MOUNT_KEEPER_START_H

#include "fs/base/str.h"
#include "fs/wire/handover.h"

#include <stdbool.h>
#include <sys/types.h>

struct launch {
    int fd[FD_LAST + 1]; /* the descriptor for each number; -1: none. FD_READY is created here */
    const char *state;
    bool may_mount; /* let it keep the right to unmount in our user namespace */
};

void launch_init(struct launch *launch);
/* 0: the mount is live. -EINTR: a signal was caught (interrupt.h). Else `why` has the keeper's reason, and `pid` is set
 * (0: none was started); the caller then unmounts, which ends it. */
int launch_keeper(const struct launch *launch, pid_t *pid, struct str *why);

#endif
