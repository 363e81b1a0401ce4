/* Fetches: what this node asks other nodes for. Each question in progress has a slot of the ring; reads wait for slots.
 *
 * A node is silent if nothing arrived from it for peer_timeout since a fetch was sent or it last said WAIT. A silent
 * node is suspected (see peer.h), and its reads go to the source. A read that had to wait for a slot may end earlier,
 * without suspicion. */
#ifndef FS_WORLD_FETCH_H
#define FS_WORLD_FETCH_H

#include "fs/world/link.h"
#include "fs/world/peer.h"
#include "fs/world/self.h"
#include "fs/world/world.h"

struct fetches;

/* The link is borrowed. Its owner keeps it until fetches_destroy. */
int fetches_create(struct link *link, struct self *self, struct world *world, struct fetches **fetches);
void fetches_destroy(struct fetches *fetches);

/* For store_peers.fetch. -EINPROGRESS: the read belongs to the fetches until they call store_fetched. */
int fetch_ask(struct fetches *fetches, struct store_read *read);
bool fetch_cancel(struct fetches *fetches, struct store_read *read); /* for store_peers.cancel */

/* Questions for which the calling thread waits; for a silent node at most peer_timeout. Reads get slots first. -ENOENT:
 * the other node lacks some of it, or there is no previous owner. -EHOSTUNREACH: the node cannot be asked now. */
/* For store_peers.before. */
int fetch_before(struct fetches *fetches, const struct value_run *run, stored_take take, void *to);
/* Which of the extents [first, first + count) has this node stored under turn k? One bit per extent, in words of 64. */
int fetch_stored(struct fetches *fetches, uint32_t node, uint64_t first, uint32_t count, uint64_t k, uint64_t *bits);
/* Fetch a piece of an object: at most BLOB_PIECE bytes into `to`. `length`: of the whole object. */
int fetch_blob(struct fetches *fetches, const struct blob_question *question, void *to, uint64_t *length);

/* A message from the ring. -EBADMSG: the courier broke the protocol. */
int fetch_answered(struct fetches *fetches, const struct ring_message *message);
int fetch_lost(struct fetches *fetches, uint32_t node); /* the node's server has ended */

void fetch_turn(struct fetches *fetches, struct world *world); /* use this world's layout from now on */
/* Time out reads that are due by `now`. Called early enough that no reader waits longer than peer_timeout. */
void fetch_tick(struct fetches *fetches, uint64_t now);
void fetch_end(struct fetches *fetches); /* all reads go to the source; new ones are rejected */
enum peer_state fetch_peer_state(struct fetches *fetches, uint32_t node);
struct peer_times fetch_peer_times(struct fetches *fetches, uint32_t node);

#endif
