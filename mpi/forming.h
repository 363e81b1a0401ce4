/* Forms a world: finds or makes every node's mount, agrees on one catalog, exchanges what nodes have cached, and
 * computes the same layout everywhere. All nodes complete each step together, so that no node waits for one that
 * failed. */
#ifndef MPI_FORMING_H
#define MPI_FORMING_H

#include "mpi/doorbell.h"
#include "mpi/helper.h"
#include "mpi/members.h"

/* Returns when all servers have the same layout and all couriers know where to ring. 0, or -errno after reporting
 * it. */
int forming_begin(struct members *members, struct courier_helper *helper, struct doorbell **doorbell);
/* Call it when the receives are posted: peers may be asked from now on; node 0 prints who has joined. */
int forming_live(const struct members *members);

#endif
