/* The nodes of a world that forms, and whether they fit together. Every node describes itself to all. A refusal is one
 * line from node 0 that names the node. */
#ifndef MPI_MEMBERS_H
#define MPI_MEMBERS_H

#include "mpi/agree.h"
#include "mpi/arguments.h"
#include "mpi/home.h"

struct members {
    const struct arguments *arguments;
    struct nodes *nodes;
    struct home *home;
    struct wire_member *member; /* by node number; NULL: not gathered yet */
};

/* Find this node's mount, unless one will be made; then gather all descriptions, and compare their options. */
int members_gather(struct members *members);
/* The same when all are mounted: they must agree in everything, and have different ids. */
int members_gather_mounted(struct members *members);
void members_fini(struct members *members);

const struct wire_member *members_mine(const struct members *members);
uint32_t members_groups(const struct members *members);  /* from the first node that has the option */
uint64_t members_timeout(const struct members *members); /* the shortest peer_timeout */

#endif
