/* Before the leader mounts, all nodes that have cached the same catalog look at the source, each at a part of it. So
 * the leader need not look at all files. */
#ifndef MPI_LOOKS_H
#define MPI_LOOKS_H

#include "mpi/helper.h"
#include "mpi/members.h"

/* On the leader, `looked` becomes a file with the results of all nodes; -1: none. */
int looks_share(const struct members *members, struct courier_helper *helper, uint32_t leader, int *looked);

#endif
