/* What the launcher left in the environment, and what Open MPI is to find there. */
#ifndef MPI_ENVIRONMENT_H
#define MPI_ENVIRONMENT_H

#include "fs/base/str.h"

/* Settings of Open MPI that the courier is better off with, where the user has not chosen. Before MPI_Init. */
void environment_tune(void);
/* Before a program is executed that is none of this world: nothing of the launcher is left, DEALFS_ALONE is set. */
void environment_leave(void);
/* The launcher started several of us, each a world of its own: -EPROTO, and why. */
int environment_check_size(int size, struct str *why);

#endif
