/* The nodes of ranks, and the owners of samples. */
#ifndef FS_PLAN_PLACEMENT_H
#define FS_PLAN_PLACEMENT_H

#include <stdint.h>

enum { PLAN_NODES_MOST = 16384, PLAN_GROUPS_MOST = 64 };

/* Which ranks run on which node. Those of a node are consecutive and ascending. */
struct placement {
    uint32_t nodes, ranks;
    uint32_t *first; /* nodes + 1 elements: node v has rank[first[v]] … rank[first[v + 1] - 1] */
    uint32_t *rank;
    uint16_t *node; /* per rank */
};

/* `node_of_rank` NULL: ranks / nodes consecutive ranks per node. -EDOM: ranks is not a multiple of nodes; -ERANGE: no
 * such node; -ENOMEM. */
int placement_init(struct placement *p, uint32_t nodes, uint32_t ranks, const uint32_t *node_of_rank);
void placement_fini(struct placement *p);
/* The node of a rank if node_of_rank is NULL. UINT32_MAX: ranks is not a multiple of nodes. */
uint32_t placement_even(uint32_t nodes, uint32_t ranks, uint32_t rank);

/* The owners of each sample of the list: in each group a node, or none (any number that is not a node). Borrowed. */
struct owners {
    uint32_t nodes, groups;
    const uint16_t *of[PLAN_GROUPS_MOST]; /* by group and sample */
};

#endif
