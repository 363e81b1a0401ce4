/* One catalog for all nodes. That of the live mounts wins, which must be the same; else the first node that is to be
 * mounted scans the source while it mounts; else, all mounts being live and waiting for a catalog, the first that can
 * scans. A node that has another one or none gets it. With resize= that is the source's, whose images all nodes then
 * make smaller (images.h); or, from a live mount, that with what was made already. */
#ifndef MPI_BROADCAST_H
#define MPI_BROADCAST_H

#include "mpi/helper.h"
#include "mpi/members.h"

/* `members` are gathered. After it every node is mounted, and greeted, and has the same catalog. */
int broadcast_catalog(const struct members *members, struct courier_helper *helper);

#endif
