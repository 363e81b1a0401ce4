/* Before the leader mounts, all nodes that have cached the same catalog look at the source, each at a part of it: the
 * leader then need not look at all files. */
#ifndef MPI_LOOKS_H
#define MPI_LOOKS_H

#include "mpi/helper.h"
#include "mpi/members.h"

/* `looked` becomes, on the leader, a file of what all have found; -1: there is none. */
int looks_share(const struct members *members, struct courier_helper *helper, uint32_t leader, int *looked);

#endif
