/* What other nodes ask this one for: answered from the tiers in stored form, or after a load from the source, of which
 * at most one per part is in progress, for all nodes.
 *
 * It is loaded as a reader of this node would have it loaded, so that all who ask wait for the same load; meanwhile the
 * other node is told to wait. A node that falls silent keeps the slots of its answers: it has a part of them at most.
 *
 * Who owns an extent now asks BEFORE for what this node owned: that is answered from the tiers, or at once with
 * -ENOENT; so is a question for what this node neither holds nor owns. */
#ifndef FS_WORLD_SERVE_H
#define FS_WORLD_SERVE_H

#include "fs/world/link.h"
#include "fs/world/self.h"
#include "fs/world/world.h"

struct serves;

/* The link is borrowed: who holds it does until it is gone. */
int serves_create(struct link *link, struct self *self, struct world *world, struct serves **serves);
void serves_destroy(struct serves *serves);

/* What is stored is told as the owner of this world's layout; to be called when nothing is dropped any more of what the
 * layouts before it took away. */
void serve_turn(struct serves *serves, struct world *world);

/* From the ring: -EBADMSG: the courier errs. */
int serve_asked(struct serves *serves, const struct ring_message *message);
int serve_sent(struct serves *serves, const struct ring_message *message);

/* Who asked for what has no slot yet is told so, and after peer_timeout not to wait for it. */
void serve_tick(struct serves *serves, uint64_t now);
void serve_end(struct serves *serves);

#endif
