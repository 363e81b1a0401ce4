/* Sorts ranks by node: a counting sort. */
#include "fs/plan/placement.h"

#include <errno.h>
#include <stdlib.h>

uint32_t placement_even(uint32_t nodes, uint32_t ranks, uint32_t rank)
{
    return nodes == 0 || ranks < nodes || ranks % nodes ? UINT32_MAX : rank / (ranks / nodes);
}

static int placement_check(uint32_t nodes, uint32_t ranks, const uint32_t *node_of_rank)
{
    if (!node_of_rank)
        return ranks % nodes ? -EDOM : 0;
    for (uint32_t r = 0; r < ranks; r++)
        if (node_of_rank[r] >= nodes)
            return -ERANGE;
    return 0;
}

int placement_init(struct placement *p, uint32_t nodes, uint32_t ranks, const uint32_t *node_of_rank)
{
    int error = placement_check(nodes, ranks, node_of_rank);
    *p = (struct placement){0};
    if (error)
        return error;
    struct placement made = {.nodes = nodes, .ranks = ranks};
    made.first = calloc(nodes + 2, sizeof *made.first);
    made.rank = malloc(ranks * sizeof *made.rank);
    made.node = malloc(ranks * sizeof *made.node);
    if (!made.first || !made.rank || !made.node) {
        placement_fini(&made);
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        made.node[r] = (uint16_t)(node_of_rank ? node_of_rank[r] : placement_even(nodes, ranks, r));
        made.first[made.node[r] + 2]++;
    }
    for (uint32_t v = 2; v <= nodes; v++)
        made.first[v] += made.first[v - 1];
    for (uint32_t r = 0; r < ranks; r++)
        made.rank[made.first[made.node[r] + 1]++] = r;
    *p = made;
    return 0;
}

void placement_fini(struct placement *p)
{
    free(p->first);
    free(p->rank);
    free(p->node);
    *p = (struct placement){0};
}
