/* The shard: the bytes this node keeps, in a RAM tier and an SSD tier, each a RocksDB of segments.
 *
 * The tiers hold disjoint parts; the RAM tier fills first. Nothing is evicted. A part is held whole or not at all. */
#ifndef FS_STORE_SHARD_H
#define FS_STORE_SHARD_H

#include "fs/catalog/cut.h"
#include "fs/store/layer.h"
#include "fs/store/tier-terms.h"
#include "fs/store/value.h"

/* How the files of a catalog are cut into parts: a file of up to a piece is one, a larger one has one for each value.
 */
static inline int parts_init(struct cut *parts, const struct catalog *catalog)
{
    return cut_init(parts, catalog, PIECE_BYTES, __builtin_ctz(VALUE_BYTES));
}

struct shard_config {
    const struct catalog *catalog;
    struct tier_config tier[TIERS];
};

struct shard;

/* Opens what is there and rebuilds the map; a tier that is still locked is opened later by a thread of the shard, and
 * until then counts as empty and takes nothing. Never fails because of a tier: see shard_status. */
int shard_open(const struct shard_config *config, struct shard **shard);
void shard_close(struct shard *shard); /* the open segment of the SSD tier is stored first */

/* What is asked for a tier's bytes: the tier itself, until the caller puts a layer of its own before it. The shard
 * destroys it. Before anything is read. */
struct layer **shard_layer(struct shard *shard, enum tier_name tier);

/* The part that has this byte: its bytes, and the tier that holds it; TIERS: none does. */
void shard_part(const struct shard *shard, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to);
enum tier_name shard_where(const struct shard *shard, uint32_t file, uint64_t offset);
bool shard_drop(struct shard *shard, uint32_t file, uint64_t offset); /* holds it no more; false: was not held */
/* Is each part of these bytes of a file in the file of a segment, and not in memory only? */
bool shard_is_stored(const struct shard *shard, uint32_t file, uint64_t from, uint64_t to);

/* The bytes of a span out of the tiers up to `most`, into an empty answer; `slowest`: of those that were asked. Waits
 * for nothing but the tiers' own storage. -ENOENT, and an empty answer: some part is not held there, or its value is
 * bad: then it is dropped and counted, and held no more. */
int shard_get(struct shard *shard, const struct span *span, enum tier_name most, struct answer *answer,
              enum tier_name *slowest);
bool shard_holds(const struct shard *shard, const struct span *span); /* each part of it, in any tier */
/* How far the parts from `at` on, which lies in the span, are all held in the same tier, or all in none up to
 * `most`. */
uint64_t shard_run(const struct shard *shard, const struct span *span, uint64_t at, enum tier_name most,
                   enum tier_name *tier);
/* Stored values that a span touches, as they lie, checked, at most ANSWER_VALUES: each is handed to `put` while it is
 * pinned. 0, or -ENOENT: one is not held; some may have been put. */
int shard_stored(struct shard *shard, const struct span *span, stored_put put, void *user);

/* Room for the values of a run of whole parts of one file, to be filled by one thread; any number of rooms may be
 * open. What they take at most is reserved at once, and what compression saves is given back at the commit. -ENOSPC:
 * no tier has room, now or ever: serve without keeping. Where the parts are held already by the time of the commit,
 * all of the room is given back. */
int shard_reserve(struct shard *shard, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
/* The room's i-th value as another node has stored it: checked, and kept as it is. -EBADMSG: the raw bytes are still to
 * be put there. */
int shard_take(struct room *room, uint32_t i, const void *bytes, uint32_t length);
void shard_commit(struct value_codec_state *codec, struct room *room);
void shard_abandon(struct room *room);

/* Store what is in memory only; waits. -EBUSY: all is stored but segments with rooms that do not come back. */
int shard_flush(struct shard *shard);
/* Move the live values out of segments that are a quarter dead, and drop those; waits. Also runs by itself. */
int shard_reclaim(struct shard *shard);
/* For what found no room: store what is in memory only, drop segments without live values, or where there is none move
 * the live values out of the one with the most dead bytes, in the RAM tier, else in the SSD tier; waits. Returns the
 * bytes that have become free. */
uint64_t shard_make_room(struct shard *shard);

struct pool *shard_pool(struct shard *shard); /* for unpack_value */
void shard_status(struct shard *shard, enum tier_name tier, struct tier_status *status);
bool shard_is_locked(struct shard *shard); /* some tier is: nothing is taken yet */

/* The bytes of values, with VALUE_COST for each, that surely fit into a tier of this capacity, except for a rest that
 * is smaller than what is reserved at once. */
uint64_t shard_room(uint64_t capacity);
/* What of that is left free where samples are to change their nodes: they come before the room is back of those that
 * leave. Four segments or 3 %, at most a third of the tier. */
uint64_t shard_kept_free(uint64_t capacity);
/* What a tier of this capacity takes at most beyond it: the values of segments that are not stored yet, one
 * segment that is being moved, RocksDB's own files. A tmpfs for it is capacity + shard_overhead(capacity). */
uint64_t shard_overhead(uint64_t capacity);

#endif
