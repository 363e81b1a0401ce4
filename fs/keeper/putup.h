/* Attaches the two mounts to their mountpoints, if the command has created them detached (handover.h). This waits for
 * the server, so a short-lived child of the keeper does it. */
#ifndef FS_KEEPER_PUTUP_H
#define FS_KEEPER_PUTUP_H

#include "fs/attach/config.h"

/* Returns the child, or -1. It exits with 0; otherwise it has sent the reason to the command. */
pid_t putup_start(const struct mount_config *config);

#endif
