/* Put the two mounts in their places, where the command has made them without (handover.h). That waits for the server,
 * so a short-lived child of the keeper does it. */
#ifndef FS_KEEPER_PUTUP_H
#define FS_KEEPER_PUTUP_H

#include "fs/attach/config.h"

/* Returns the child, or -1. It ends with 0; or it has told the command why not. */
pid_t putup_start(const struct mount_config *config);

#endif
