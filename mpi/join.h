/* How a world forms: every node's mount is found or made, all agree on one catalog, tell what they hold, and compute
 * the same directory. A refusal is one line, from node 0, that names the node. */
#ifndef MPI_JOIN_H
#define MPI_JOIN_H

#include "mpi/agree.h"
#include "mpi/doorbell.h"
#include "mpi/launch.h"
#include "mpi/link.h"
#include "mpi/options.h"

struct join {
    const struct options *options;
    struct helper *helper;
    struct nodes *nodes;
    struct link *link;
    struct doorbell *doorbell;        /* made by join_form; the caller's */
    uint64_t timeout;                 /* set by join_form: the shortest peer_timeout */
    struct wire_member mine, *member; /* member: of all, by number */
};

/* Until all servers have the same directory. 0, or -errno after it has been reported. */
int join_form(struct join *join);
/* Receives are posted: from now on peers are asked; node 0 says who is there. */
int join_live(struct join *join);
void join_fini(struct join *join);

#endif
