/* Start the keeper with everything in its hands, and wait until it says that the mount is live. */
#ifndef CLI_MOUNT_KEEPER_START_H
#define CLI_MOUNT_KEEPER_START_H

#include "fs/base/str.h"
#include "fs/wire/handover.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct launch {
    int fd[FD_LAST + 1]; /* which descriptor gets that number; -1: none. FD_READY is made here */
    const char *state;
    bool may_mount;                    /* leave it the right to unmount in our user namespace */
    const volatile sig_atomic_t *stop; /* becomes non-zero: -EINTR */
};

void launch_init(struct launch *launch);
/* 0: the mount is live. Else `why` says what the keeper said; `pid` is set (0: none was started), and who calls takes
 * the mounts away, which ends it. */
int launch_keeper(const struct launch *launch, pid_t *pid, struct str *why);

#endif
