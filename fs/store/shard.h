/* The shard: the bytes this node keeps, in a RAM tier and an SSD tier, each a RocksDB of segments.
 *
 * The tiers hold disjoint parts; the RAM tier fills first. Nothing is evicted. A part is held whole or not at all. */
#ifndef FS_STORE_SHARD_H
#define FS_STORE_SHARD_H

#include "fs/store/layer.h"
#include "fs/store/value.h"

enum tier_name { TIER_RAM, TIER_SSD, TIERS };
extern const char *const tier_names[TIERS]; /* "ram", "ssd" */

/* Why a tier takes nothing more, or nothing at all. */
enum tier_state {
    TIER_ABSENT,  /* not configured */
    TIER_LOCKED,  /* the server before us still has it open, or descriptors or memory are short: tried again */
    TIER_OPEN,    /* holds and admits */
    TIER_CLOSED,  /* holds, admits no more: an error stopped admission (ENOSPC, EDQUOT, EIO) */
    TIER_FAILED,  /* cannot be opened even after starting it anew: holds nothing */
};

struct tier_config {
    const char *directory; /* NULL: absent. RAM: a tmpfs, read through mmap; SSD: direct reads */
    uint64_t capacity;     /* bytes of values */
};

struct shard_config {
    const struct catalog *catalog;
    const struct cut *parts;
    struct tier_config tier[TIERS];
    int zstd_level; /* 0: off */
};

struct tier_status {
    enum tier_state state;
    int error; /* the errno that closed or failed it */
    uint64_t capacity, held; /* held: stored bytes, as budgeted */
    uint64_t parts, segments, dead, bad_values;
};

struct shard;

/* Opens what is there and rebuilds the map; a tier that is still locked is opened later by a thread of the shard, and
 * until then counts as empty and takes nothing. Never fails because of a tier: see shard_status. */
int shard_open(const struct shard_config *config, struct shard **shard);
void shard_close(struct shard *shard); /* the open segment of the SSD tier is stored first */

/* The two tiers as layers; get never waits for anything but the tier's own storage. -ENOENT when any part of the span
 * is not held there, or when a value is bad: then it is dropped and counted, and the part is no longer held. */
struct layer *shard_layer(struct shard *shard, enum tier_name tier);

bool shard_holds(const struct shard *shard, uint64_t part, enum tier_name *tier); /* `tier` may be NULL */
bool shard_drop(struct shard *shard, uint64_t part); /* holds it no more; false: was not held */
/* Stored values of a file as they lie, checked, at most ANSWER_VALUES: each is handed to `put` while it is pinned. 0, or
 * -ENOENT: one is not held; some may have been put. */
int shard_stored(struct shard *shard, uint32_t file, uint32_t value, uint32_t count,
                 void (*put)(void *user, uint32_t i, const void *bytes, uint32_t length), void *user);

/* Room for the values of a run of parts of one file, to be filled by the caller. The bytes are reserved at once, and given
 * back by what compression saves. -ENOSPC: no tier has room (now or ever): serve without keeping. A room is filled by one thread; any number of
 * rooms may be open. When the parts are held already by the time of the commit, the room is given back: 0. */
struct room {
    int values;
    struct iovec value[PIECE_BYTES / VALUE_BYTES]; /* where the raw bytes go, one value each */
    void *segment;
    uint32_t place;
    uint32_t file;
    uint64_t offset, bytes;
};
int shard_reserve(struct shard *shard, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
int shard_commit(struct shard *shard, struct value_codec_state *codec, struct room *room);
void shard_abandon(struct shard *shard, struct room *room);

/* Store what is in memory only; waits. */
int shard_flush(struct shard *shard);
/* Move the live values out of segments that are a quarter dead, and drop those; waits. Also runs by itself. */
int shard_reclaim(struct shard *shard);

void shard_status(struct shard *shard, enum tier_name tier, struct tier_status *status);

/* What a tier of this capacity takes at most beyond it: the values of segments that are not stored yet, one
 * segment that is being moved, RocksDB's own files. A tmpfs for it is capacity + shard_overhead(capacity). */
uint64_t shard_overhead(uint64_t capacity);

#endif
