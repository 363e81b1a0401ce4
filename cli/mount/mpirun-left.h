/* What Open MPI leaves on a machine when its mpirun is killed: segments of shared memory, and session directories. */
#ifndef CLI_MOUNT_MPIRUN_LEFT_H
#define CLI_MOUNT_MPIRUN_LEFT_H

#include "cli/mount/leavings.h"

/* Those of this user alone, also for root, and of processes that are gone. */
void mpirun_left_clean(struct clean *clean);

#endif
