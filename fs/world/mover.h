/* The mover: after a turn it has the bytes follow. What this node owns now and lacks it pulls from who owned it before;
 * what it holds and does not own any more it drops when the new owner has stored it. There is no journal: both are seen
 * by looking at what is held, so a server that was started anew goes on where the one before was.
 *
 * Where the room of a tier is spent, what others have stored is dropped at once, and the room of what was dropped is
 * won back by writing segments again. Where all of that gives none, what is left is refused: it stays where it is. */
#ifndef FS_WORLD_MOVER_H
#define FS_WORLD_MOVER_H

#include "fs/world/membership.h"

struct mover;

int mover_create(struct self *self, struct membership *membership, struct mover **mover);
int mover_start(struct mover *mover); /* its thread */
void mover_stop(struct mover *mover); /* when the membership has ended; waits for the thread */
void mover_destroy(struct mover *mover);

/* For store_peers.pulled. */
void mover_pulled(struct mover *mover, uint32_t number, uint32_t file, uint64_t offset, uint32_t length, int error);
/* How the bytes follow the last turn of this world, and the k of the last move that is done. */
uint64_t mover_look(struct mover *mover, const struct world *world, struct move_news *news);
uint64_t mover_moved(struct mover *mover, const struct world *world); /* that k alone, which costs little */

#endif
