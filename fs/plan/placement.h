/* Where things are: ranks on nodes, samples with owners. */
#ifndef FS_PLAN_PLACEMENT_H
#define FS_PLAN_PLACEMENT_H

#include <stdint.h>

enum { PLAN_NODES_MOST = 16384, PLAN_GROUPS_MOST = 64 };

/* Which ranks run on which node. Those of a node stand in a row and ascend. */
struct placement {
    uint32_t nodes, ranks;
    uint32_t *first; /* of nodes + 1: node v has rank[first[v]] … rank[first[v + 1] - 1] */
    uint32_t *rank;
    uint16_t *node; /* by rank */
};

/* `node_of_rank` NULL: ranks / nodes consecutive ranks a node. -EDOM: ranks cannot be divided so; -ERANGE: there is no
 * such node; -ENOMEM. */
int placement_init(struct placement *p, uint32_t nodes, uint32_t ranks, const uint32_t *node_of_rank);
void placement_fini(struct placement *p);
/* The node of a rank where node_of_rank is NULL. UINT32_MAX: the ranks cannot be divided so. */
uint32_t placement_even(uint32_t nodes, uint32_t ranks, uint32_t rank);

/* Who owns each sample of the list: in each group of the world a node, or nobody (a number that is none of a node).
 * Borrowed. */
struct owners {
    uint32_t nodes, groups;
    const uint16_t *of[PLAN_GROUPS_MOST]; /* by group and sample */
};

#endif
