/* Algorithm 1 of Yang and Cong: the transfers that make loads equal, the largest surplus giving to the largest deficit
 * until there is none.
 *
 * What nobody owns is given first, to the largest deficits. Of equal ones the lower node comes first. With p nodes
 * there are at most p - 1 transfers between them: each empties one of the two, the last one both. */
#ifndef FS_PLAN_BALANCE_H
#define FS_PLAN_BALANCE_H

#include <stdint.h>

struct transfer {
    uint32_t from, to, count; /* from: the number of nodes when it is nobody */
};

struct balance {
    uint32_t nodes;
    uint64_t *surplus, *deficit; /* the heaps: size in the upper bits, below them what makes lower nodes larger */
    uint32_t surpluses, deficits;
    struct transfer *transfer; /* room for 2 · nodes; nobody's come first */
    uint32_t transfers;
    uint32_t first; /* the first one between nodes */
    uint64_t moved; /* the sum of the surpluses */
};

int balance_init(struct balance *b, uint32_t nodes);
void balance_fini(struct balance *b);
/* The sum of `count`, with nobody's at count[nodes], is that of `target`. */
void balance_run(struct balance *b, const uint32_t *count, const uint32_t *target);

#endif
