/* Spreading extents over nodes in proportion to their room: each goes to the node that is least full, counted in parts
 * of the room it had at first, where it still fits. Exact in integers, so the same everywhere.
 *
 * Least full is the smallest (dealt + typical) / room, ties to the lower number, where `typical` is the cost of a
 * typical extent: a node with little room has its turn when it is due, not before all others. */
#ifndef FS_WORLD_SPREAD_H
#define FS_WORLD_SPREAD_H

#include <stdint.h>

struct spread;

#define SPREAD_NONE UINT32_MAX
#define SPREAD_MOST ((uint64_t)1 << 62) /* of any room; more counts as this */

int spread_create(const uint64_t *room, uint32_t nodes, uint64_t typical, struct spread **spread);
void spread_destroy(struct spread *spread);

/* The node that has the next extent, of this cost, or SPREAD_NONE: it fits nowhere. */
uint32_t spread_next(struct spread *spread, uint64_t cost);

#endif
