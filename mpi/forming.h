/* How a world forms: every node's mount is found or made, all agree on one catalog, tell what they hold, and compute
 * the same layout. Each step ends in one that all take together, so that no node is left waiting for one that
 * failed. */
#ifndef MPI_FORMING_H
#define MPI_FORMING_H

#include "mpi/doorbell.h"
#include "mpi/helper.h"
#include "mpi/members.h"

/* Until all servers have the same layout, and all know where to ring. 0, or -errno after it has been reported. */
int forming_begin(struct members *members, struct courier_helper *helper, struct doorbell **doorbell);
/* Receives are posted: from now on peers are asked; node 0 says who is there. */
int forming_live(const struct members *members);

#endif
