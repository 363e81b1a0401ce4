/* Spreading extents over nodes: all end up with the same number of them, those that they had at first included, as far
 * as their room goes; what a full node cannot have goes evenly to the others. Exact in integers, so the same
 * everywhere.
 *
 * A node's share is the number that it is due, where each extent costs the mean of all. Each extent in turn goes to the
 * node with the smallest (given + 1) / share that has room for it: nodes with small shares have extents of the whole
 * sequence, not of its beginning. Ties go to who was given least, then to the lower number. */
#ifndef FS_WORLD_SPREAD_H
#define FS_WORLD_SPREAD_H

#include <stdint.h>

struct spread;

#define SPREAD_NONE UINT32_MAX

struct spread_node {
    uint64_t room;  /* the cost that it can be given */
    uint64_t count; /* of extents that it has already */
};

/* For so many extents, whose costs have this mean, rounded down. -ENOMEM. */
int spread_create(const struct spread_node *node, uint32_t nodes, uint64_t extents, uint64_t mean,
                  struct spread **spread);
void spread_destroy(struct spread *spread);

/* The node that has the next extent, of this cost, or SPREAD_NONE: it fits nowhere. */
uint32_t spread_next(struct spread *spread, uint64_t cost);

#endif
