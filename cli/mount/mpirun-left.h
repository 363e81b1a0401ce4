/* What Open MPI leaves on a machine when its mpirun is killed: segments of shared memory, and session directories. */
#ifndef CLI_MOUNT_MPIRUN_LEFT_H
#define CLI_MOUNT_MPIRUN_LEFT_H

#include "cli/mount/leavings.h"

/* Removes only those of this user, also for root, whose processes are gone. */
void mpirun_left_clean(struct clean *clean);

#endif
