/* The store: one place to read from. Assembles the layers, loads what no tier holds, keeps what has room.
 *
 *   store_read ─▶ ram ─▶ ssd ─▶ loader: one load in flight a part, later readers park ─▶ (peer) ─▶ source
 */
#ifndef FS_STORE_STORE_H
#define FS_STORE_STORE_H

#include "fs/store/shard.h"

struct store;

struct store_config {
    const struct catalog *catalog;
    int source; /* the source's root, borrowed */
    struct tier_config tier[TIERS];
    int zstd_level;
    int source_threads;
    /* For tests: fault layers, separated by semicolons, each a specification as in fs/store/fault.c; over the source,
     * or where it begins with on=ram, on=ssd or on=source over that. NULL: none */
    const char *faults;
};

int store_open(const struct store_config *config, struct store **store);
void store_close(struct store *store); /* readers that are parked are answered -ESHUTDOWN first */

enum place { PLACE_RAM, PLACE_SSD, PLACE_PEER, PLACE_SOURCE, PLACES };
extern const char *const place_names[PLACES];

/* One read. The caller owns it from before store_read until `done`, or until store_read returned other than
 * -EINPROGRESS. */
struct store_read {
    struct span span;
    void (*done)(struct store_read *read, int error);
    /* the answer: */
    struct answer answer; /* release it after use */
    enum place place;     /* where it came from */
    /* the store's own: */
    struct store_read *next;
    uint64_t began;
    uint64_t lacked; /* 1 + offset of the furthest byte that it parked for; 0: never parked */
    int tries;       /* how often it got no further than that */
};

/* 0: answered. -EINPROGRESS: parked; `done` is called once, from another thread or before this returns, with 0 or
 * -errno. Else -errno. Never waits for the source. */
int store_read(struct store *store, struct store_read *read);

/* Fill the shards from the source. Loads that readers wait for go first. */
struct stage_progress {
    enum { STAGE_IDLE, STAGE_RUNNING, STAGE_DONE, STAGE_STOPPED, STAGE_FAILED } state;
    int error;       /* of the first sample that failed; staging goes on past it */
    uint64_t failed; /* samples */
    uint64_t files, files_total, bytes, bytes_total; /* looked at, of the whole catalog */
    uint64_t kept;    /* raw bytes now held in a tier, of bytes_total */
    uint64_t elapsed; /* nanoseconds */
};
int store_stage_start(struct store *store); /* 0 also when it runs already */
void store_stage_stop(struct store *store);
void store_stage_progress(struct store *store, struct stage_progress *progress);

/* Where a file's bytes are: the tier of its first part, or -ENOENT. */
int store_where(struct store *store, uint32_t file, enum tier_name *tier);

enum { STORE_BUCKETS = 32, STORE_ERRNOS = 134 };
struct store_stats {
    uint64_t reads[PLACES], bytes[PLACES];
    uint64_t latency[PLACES][STORE_BUCKETS]; /* READs that took less than 2^i microseconds, not cumulative */
    uint64_t latency_sum[PLACES];            /* nanoseconds */
    uint64_t errors[STORE_ERRNOS];           /* failed reads by errno */
    uint64_t source_samples, source_bytes;
    uint64_t parked; /* readers waiting now */
    struct tier_status tier[TIERS];
};
void store_stats(struct store *store, struct store_stats *stats);

#endif
