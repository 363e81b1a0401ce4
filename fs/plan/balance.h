/* Algorithm 1 of Yang and Cong: the transfers that make loads equal. The largest surplus gives to the largest deficit
 * until there is none.
 *
 * Samples without an owner are given first, to the largest deficits. Ties go to the lower node. With p nodes there are
 * at most p - 1 transfers between nodes: each empties one of the two, the last one both. */
#ifndef FS_PLAN_BALANCE_H
#define FS_PLAN_BALANCE_H

#include <stdint.h>

struct transfer {
    uint32_t from, to, count; /* from: the number of nodes means "no owner" */
};

struct balance {
    uint32_t nodes;
    uint64_t *surplus, *deficit; /* the heaps: size in the upper bits; the lower bits order equal sizes by node */
    uint32_t surpluses, deficits;
    struct transfer *transfer; /* room for 2 · nodes; those of samples without an owner come first */
    uint32_t transfers;
    uint32_t first; /* index of the first transfer between nodes */
    uint64_t moved; /* sum of the surpluses */
};

int balance_init(struct balance *b, uint32_t nodes);
void balance_fini(struct balance *b);
/* The sum of `count`, including count[nodes] for samples without an owner, must equal that of `target`. */
void balance_run(struct balance *b, const uint32_t *count, const uint32_t *target);

#endif
