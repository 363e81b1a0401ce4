/* What this node asks others for: a fetch a slot of the ring, and the reads that wait for slots.
 *
 * A node is silent when nothing at all has come from it since a fetch was asked, or last heard of, for peer_timeout. (A
 * read that waited for its slot first ends sooner, which says nothing about the node.) A silent node is suspected (see
 * peer.h), and its reads go to the source. */
#ifndef FS_WORLD_FETCH_H
#define FS_WORLD_FETCH_H

#include "fs/world/link.h"
#include "fs/world/peer.h"
#include "fs/world/self.h"
#include "fs/world/world.h"

struct fetches;

/* The link is borrowed: who holds it does until it is gone. */
int fetches_create(struct link *link, struct self *self, struct world *world, struct fetches **fetches);
void fetches_destroy(struct fetches *fetches);

/* For store_peers.fetch: the read is the fetches' until store_fetched when it returns -EINPROGRESS. */
int fetch_ask(struct fetches *fetches, struct store_read *read);
bool fetch_cancel(struct fetches *fetches, struct store_read *read); /* for store_peers.cancel */

/* Questions for which the thread waits, no longer than peer_timeout where the other node is silent. They have slots
 * after the reads. -ENOENT: it has not all of them, or nobody kept them before; -EHOSTUNREACH: it cannot be asked now.
 */
/* For store_peers.before. */
int fetch_before(struct fetches *fetches, uint32_t file, uint32_t value, uint32_t count, stored_take take, void *to);
/* Which of the extents [first, first + count) has this node stored under turn k? In words of 64. */
int fetch_stored(struct fetches *fetches, uint32_t node, uint64_t first, uint32_t count, uint64_t k, uint64_t *bits);
/* A piece of what its node keeps under a key: at most BLOB_PIECE bytes into `to`, and the length of the whole. */
int fetch_blob(struct fetches *fetches, uint32_t node, uint64_t key, uint32_t piece, void *to, uint64_t *length);

/* From the ring: -EBADMSG: the courier errs. */
int fetch_answered(struct fetches *fetches, const struct ring_message *message);
int fetch_lost(struct fetches *fetches, uint32_t node); /* its server has ended */

void fetch_turn(struct fetches *fetches, struct world *world); /* from now on by this one's layout */
/* End what is silent for too long by `now`, so that no reader waits longer. */
void fetch_tick(struct fetches *fetches, uint64_t now);
void fetch_end(struct fetches *fetches); /* all reads go to the source; no more are taken */
enum peer_state fetch_peer_state(struct fetches *fetches, uint32_t node);
struct peer_times fetch_peer_times(struct fetches *fetches, uint32_t node);

#endif
