/* The mover moves bytes to their new owners after a turn.
 *
 *   1. It pulls the extents that this node now owns and lacks, from their previous owners.
 *   2. It drops the extents that this node holds and no longer owns, once their new owners have stored them.
 *   3. If a tier is full, it immediately drops what other nodes have stored, and rewrites segments to reclaim the room.
 *   4. If that gives no room, it refuses the rest: those extents stay at their previous owners.
 *
 * There is no journal. Both sets of extents follow from what the tiers hold, so a restarted server resumes. */
#ifndef FS_WORLD_MOVER_H
#define FS_WORLD_MOVER_H

#include "fs/world/membership.h"

struct mover;

int mover_create(struct self *self, struct membership *membership, struct mover **mover);
int mover_start(struct mover *mover); /* its thread */
void mover_stop(struct mover *mover); /* when the membership has ended; waits for the thread */
void mover_destroy(struct mover *mover);

/* For store_peers.pulled. */
void mover_pulled(struct mover *mover, uint32_t number, const struct span *span, int error);
/* How far the bytes of the last turn of this world have moved. Returns the k of the last completed move. */
uint64_t mover_look(struct mover *mover, const struct world *world, struct move_news *news);
uint64_t mover_moved(struct mover *mover, const struct world *world); /* only that k; cheap */

#endif
