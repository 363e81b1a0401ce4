/* Spreads extents over nodes. All nodes get the same number of extents, as far as their room allows; extents that they
 * have already count. What a full node cannot take goes evenly to the others. Integer arithmetic only, so the result is
 * the same everywhere.
 *
 * A node's share is the number of extents due to it if each had the mean cost. Each extent goes to the node with the
 * smallest (given + 1) / share that has room for it: so a node with a small share gets extents from the whole sequence,
 * not just its beginning. Ties go to the node with the fewest given extents, then to the lower number. */
#ifndef FS_WORLD_SPREAD_H
#define FS_WORLD_SPREAD_H

#include <stdint.h>

struct spread;

#define SPREAD_NONE UINT32_MAX

struct spread_node {
    uint64_t room;  /* cost that it can take */
    uint64_t count; /* number of extents that it already has */
};

/* `extents`: how many will be spread; `mean`: their mean cost, rounded down. -ENOMEM. */
int spread_create(const struct spread_node *node, uint32_t nodes, uint64_t extents, uint64_t mean,
                  struct spread **spread);
void spread_destroy(struct spread *spread);

/* The node for the next extent, of this cost; SPREAD_NONE: it fits nowhere. */
uint32_t spread_next(struct spread *spread, uint64_t cost);

#endif
