/* Gives all nodes the same catalog:
 *
 *   1. If mounts are live, theirs is used; they must all have the same.
 *   2. Otherwise the first node that is to be mounted scans the source during its mount.
 *   3. If all mounts are live and wait for a catalog, the first node that can scan does so.
 *
 * A node with another catalog or none gets it. With resize= it is the source's catalog, and all nodes then resize its
 * images (images.h); or, from a live mount, the catalog with the resized images. */
#ifndef MPI_BROADCAST_H
#define MPI_BROADCAST_H

#include "mpi/helper.h"
#include "mpi/members.h"

/* `members` must be gathered. Afterwards every node is mounted, has sent HELLO, and has the same catalog. */
int broadcast_catalog(const struct members *members, struct courier_helper *helper);

#endif
