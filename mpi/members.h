/* Who is there when a world forms, and do they fit together? Every node describes itself to all; a refusal is one line,
 * from node 0, that names the node. */
#ifndef MPI_MEMBERS_H
#define MPI_MEMBERS_H

#include "mpi/agree.h"
#include "mpi/arguments.h"
#include "mpi/home.h"

struct members {
    const struct arguments *arguments;
    struct nodes *nodes;
    struct home *home;
    struct wire_member *member; /* by number; NULL: not gathered yet */
};

/* Find this node's mount, unless one is to be made; then gather what all say, and check what they were told. */
int members_gather(struct members *members);
/* The same again, when all are mounted: they must have the same of everything, and ids of their own. */
int members_gather_mounted(struct members *members);
void members_fini(struct members *members);

const struct wire_member *members_mine(const struct members *members);
uint32_t members_groups(const struct members *members);  /* as the first who was told says */
uint64_t members_timeout(const struct members *members); /* the shortest peer_timeout */

#endif
