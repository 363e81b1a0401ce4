/* The shard: the bytes that this node caches, in a RAM tier and an SSD tier. Each tier is a RocksDB of segments.
 *
 * A part is in at most one tier, and cached completely or not at all. The RAM tier is filled first. Nothing is
 * evicted. */
#ifndef FS_STORE_SHARD_H
#define FS_STORE_SHARD_H

#include "fs/catalog/cut.h"
#include "fs/store/layer.h"
#include "fs/store/tier-terms.h"
#include "fs/store/value.h"
#include "fs/wire/tier-share.h"

/* How files are cut into parts: a file of up to PIECE_BYTES is one part, a larger one has one part per value. */
static inline int parts_init(struct cut *parts, const struct catalog *catalog)
{
    return cut_init(parts, catalog, PIECE_BYTES, __builtin_ctz(VALUE_BYTES));
}

struct shard_config {
    const struct catalog *catalog;
    struct tier_config tier[TIERS];
};

struct shard;

/* Opens the stored data and rebuilds the map. A tier that is still locked is opened later by a thread; until then it
 * counts as empty and takes nothing. A failing tier is no error: see shard_status. */
int shard_open(const struct shard_config *config, struct shard **shard);
void shard_close(struct shard *shard); /* stores the SSD tier's open segment first */

/* The layer that is asked for a tier's bytes: the tier, or one that the caller puts in front of it before anything is
 * read. The shard destroys it. */
struct layer **shard_layer(struct shard *shard, enum tier_name tier);

/* The part with this byte: its range, and the tier that has it; TIERS: none. */
void shard_part(const struct shard *shard, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to);
enum tier_name shard_where(const struct shard *shard, uint32_t file, uint64_t offset);
bool shard_drop(struct shard *shard, uint32_t file, uint64_t offset); /* false: it was not cached */
/* Drop all of a file, which has other bytes than the source although its version says the same. Later shards do not
 * take it over. `now`: nor does one with the same catalog. */
void shard_distrust(struct shard *shard, uint32_t file, bool now);
/* Are all parts of these bytes in files of segments, not only in memory? */
bool shard_is_stored(const struct shard *shard, uint32_t file, uint64_t from, uint64_t to);

/* Read the bytes of a span from the tiers up to `most`, into an empty answer. `slowest`: the slowest tier that was
 * asked. Waits only for the tiers' storage. -ENOENT, and an empty answer: a part is not cached there, or its value was
 * bad; a bad value is dropped and counted. */
int shard_get(struct shard *shard, const struct span *span, enum tier_name most, struct answer *answer,
              enum tier_name *slowest);
bool shard_holds(const struct shard *shard, const struct span *span); /* each part is cached, in any tier */
/* From `at`, which is in the span: how far all parts are in the same tier, or in none up to `most`. */
uint64_t shard_run(const struct shard *shard, const struct span *span, uint64_t at, enum tier_name most,
                   enum tier_name *tier);
/* Hand out the stored values of a span, checked, at most ANSWER_VALUES. Each is pinned while `put` runs. `verify`: also
 * values that were verified before. 0, or -ENOENT: one is not cached; some may have been put. */
int shard_stored(struct shard *shard, const struct span *span, bool verify, stored_put put, void *user);

/* Reserve room for the values of consecutive whole parts of one file. One thread fills a room; any number of rooms may
 * be open. The maximum size is reserved; the commit returns what compression saves. -ENOSPC: no tier has room, so do
 * not cache. If the parts were cached meanwhile, the commit returns the whole room. */
int shard_reserve(struct shard *shard, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
/* Take the i-th value of the room in the form in which another node stored it: it is checked and copied. -EBADMSG: put
 * the raw bytes there instead. */
int shard_take(struct room *room, uint32_t i, const void *bytes, uint32_t length);
void shard_commit(struct value_codec_state *codec, struct room *room);
void shard_abandon(struct room *room);

/* Store what is only in memory; waits. -EBUSY: some segments have rooms that were not returned; all others are
 * stored. */
int shard_flush(struct shard *shard);
/* Rewrite segments that are a quarter dead; waits. This also happens in the background. */
int shard_reclaim(struct shard *shard);
/* Make room, in the RAM tier or else in the SSD tier: store what is only in memory, drop segments without live values,
 * or else rewrite the segment with the most dead bytes. Waits. Returns the bytes that became free. */
uint64_t shard_make_room(struct shard *shard);

/* For the courier: see fs/wire/tier-share.h. Fill in the message and make its descriptors; the caller closes them.
 * -EOPNOTSUPP: the map is not shared. -ENOENT: the RAM tier has no file of this segment now. */
int shard_share(const struct shard *shard, struct message_shared *message, int fd[SHARE_FDS]);
int shard_share_segment(const struct shard *shard, uint32_t number, struct message_segment *message, int fd[SHARE_FDS]);

struct pool *shard_pool(struct shard *shard); /* for unpack_value */
void shard_status(struct shard *shard, enum tier_name tier, struct tier_status *status);
bool shard_is_locked(struct shard *shard); /* a tier is locked: nothing is taken yet */

/* Bytes of values, with VALUE_COST each, that always fit into a tier of this capacity, except for a remainder that is
 * smaller than one reservation. */
uint64_t shard_room(uint64_t capacity);
/* The part of it that stays free if samples move: new samples arrive before the room of old ones is reclaimed. Four
 * segments or 3 %, at most a third of the tier. */
uint64_t shard_kept_free(uint64_t capacity);
/* Maximum bytes that a tier uses beyond its capacity: values of segments that are not stored yet, one segment that is
 * being rewritten, RocksDB's own files. A tmpfs for it needs capacity + shard_overhead(capacity). */
uint64_t shard_overhead(uint64_t capacity);

#endif
