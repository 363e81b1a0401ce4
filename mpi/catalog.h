/* One catalog for all nodes. That of the live mounts wins, which must be the same; else the first node that is to be
 * mounted scans the source while it mounts; else, all mounts being live and waiting for a catalog, the first that can
 * scans. Whoever has another one or none gets it. */
#ifndef MPI_CATALOG_H
#define MPI_CATALOG_H

#include "mpi/join.h"

/* What a node that is not mounted has kept, or zeros. */
struct digest catalog_kept(const char *state);
/* `member` is gathered. After it every node is mounted, attached, and has the same catalog. */
int catalog_settle(struct join *join);

#endif
