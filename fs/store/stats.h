/* Counters of the store's reads. */
#ifndef FS_STORE_STATS_H
#define FS_STORE_STATS_H

#include "fs/store/read.h"
#include "fs/store/root.h"
#include "fs/store/shard.h"

enum { STORE_COUNTS = 64 << 10, STORE_BUCKETS = 32, STORE_ERRNOS = 134, SLOWEST_S = 10 };

/* The READ that took longest in the last SLOWEST_S seconds. */
struct slowest_read {
    uint64_t answered; /* nanoseconds, monotonic; 0: there was no READ */
    uint64_t us;       /* from the READ to its answer */
    uint32_t file;     /* the owner of the mount can write this number: it may be none of the catalog */
    enum place place;
};

/* The feeder's reads count only in `fed`, `source_` and the tiers. */
struct store_stats {
    uint64_t reads[PLACES], bytes[PLACES];
    uint64_t latency[PLACES][STORE_BUCKETS]; /* READs that took less than 2^i microseconds; not cumulative */
    uint64_t latency_sum[PLACES];            /* nanoseconds */
    uint64_t errors[STORE_ERRNOS];           /* failed reads by errno; for each: */
    uint64_t first_failed[STORE_ERRNOS];     /* 1 + number of the first file */
    uint64_t failed_at[STORE_ERRNOS];        /* clock_realtime of the last failure */
    struct slowest_read slowest;
    uint64_t source_samples, source_bytes;
    struct root_state root; /* of the source */
    uint64_t round_seconds; /* of mode-round.h; 0: there are no rounds */
    uint64_t parked;        /* readers that wait now */
    uint64_t waits[PLACES]; /* the same, by what they wait for */
    struct {
        uint64_t reads[PLACES], bytes[PLACES], errors;
        uint64_t waits[PLACES];
    } fed;
    struct tier_status tier[TIERS];
};
struct stats;

/* Continue the counters in `memory`, of STORE_COUNTS bytes. NULL: own memory, from zero. */
int stats_create(void *memory, struct stats **stats);
struct source_counts *stats_source(struct stats *stats); /* counters for the source */
void stats_destroy(struct stats *stats);

void stats_read(struct stats *stats, enum place place, const struct span *span, uint64_t began);
void stats_error(struct stats *stats, uint32_t file, int error);
void stats_sum(struct stats *stats, struct store_stats *out); /* sets the fields that are counted here */

#endif
