/* Serves: what other nodes ask this one for. It is answered from the tiers in stored form, or after a load from the
 * source.
 *
 * All readers of a part, of this and other nodes, share one load. A node that must wait gets WAIT. A silent node
 * keeps the slots of its answers, so no node gets more than a part of all slots.
 *
 * After a turn, the new owner asks with FETCH_BEFORE for data that this node owned. The answer comes from the tiers, or
 * is -ENOENT at once. A question for data that this node neither has nor owns also gets -ENOENT at once. */
#ifndef FS_WORLD_SERVE_H
#define FS_WORLD_SERVE_H

#include "fs/world/link.h"
#include "fs/world/self.h"
#include "fs/world/world.h"

struct serves;

/* The link is borrowed. Its owner keeps it until serves_destroy. */
int serves_create(struct link *link, struct self *self, struct world *world, struct serves **serves);
void serves_destroy(struct serves *serves);

/* Report stored extents by this world's layout. Call it when no extent of earlier layouts is being dropped any more. */
void serve_turn(struct serves *serves, struct world *world);

/* A message from the ring. -EBADMSG: the courier broke the protocol. */
int serve_asked(struct serves *serves, const struct ring_message *message);
int serve_sent(struct serves *serves, const struct ring_message *message);

/* Tell nodes whose jobs wait for a slot to wait; after peer_timeout, that there is no answer. */
void serve_tick(struct serves *serves, uint64_t now);
void serve_end(struct serves *serves);

#endif
