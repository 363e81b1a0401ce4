/* The store: one place to read from. Assembles the layers, loads what no tier holds, keeps what has room.
 *
 *   store_read ─▶ RAM tier ─▶ SSD tier ─┬─ kept here ──▶ loader ─▶ source, and into a tier
 *                                       └─ another's ──▶ its node, or the source for this once
 *
 * While samples move (fs/world/FORMAT), what is kept here may still be with the node that kept it before: the loader
 * asks that one first. */
#ifndef FS_STORE_STORE_H
#define FS_STORE_STORE_H

#include "fs/catalog/samples.h"
#include "fs/store/root.h"
#include "fs/store/shard.h"

#include <sys/queue.h>

struct feed_served;
struct store;

struct store_config {
    const struct catalog *catalog;
    int source; /* the source's root, borrowed */
    /* Where files have other bytes than in the source: its own catalog, with the same numbers, and what makes a layer
     * over the source, which it then owns, that gives them. Else NULL. */
    const struct catalog *original;
    int (*over_source)(void *user, struct layer *below, struct layer **layer);
    root_open *source_reopen; /* NULL: it cannot be */
    void *source_user;
    struct tier_config tier[TIERS];
    int zstd_level; /* 0: off */
    int source_threads;
    uint64_t source_rate; /* bytes per second that are read from the source at most; 0: no bound. See rate.h */
    /* Zeros at first, STORE_COUNTS bytes on a line of the cache: where reads are counted; the next store goes on from
     * what is in there. NULL: from nothing. */
    void *counts;
    struct feed_served *served; /* fs/wire/feed.h: where reads that are `fed` are counted. NULL: in memory of its own */
    int disk_callers;           /* how many threads in store_read may wait for an SSD at once */
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
    bool fed; /* the feeder's: all others go before it wherever it waits */
    void (*done)(struct store_read *read, int error);
    /* NULL, or called once in store_read, before anything that may take its time. From then on, and until `done` is
     * called or store_read returns otherwise than with -EINPROGRESS, store_cancel may be asked. */
    void (*waits)(struct store_read *read);
    /* the answer: */
    struct answer answer; /* release it after use */
    enum place place;     /* where it came from */
    /* the store's own: */
    TAILQ_ENTRY(store_read) parked; /* where it waits */
    uint64_t asked;                 /* for a slot: since when */
    bool pulled;                    /* no reader waits for it: see fair.h */
    uint64_t began;
    uint64_t lacked;    /* 1 + offset of the furthest byte that it parked for; 0: never parked */
    int tries;          /* how often it got no further than that */
    bool waiting;       /* `waits` was called */
    bool here;          /* for another node, see store_load */
    bool before;        /* kept here, and to be asked of who kept it before */
    enum place brought; /* the slowest of what loads that it waited for came from */
    bool quiet;         /* is not counted */
    /* the peers' own: */
    struct peer_pull *pull; /* a thread waits for it, and not the store */
    uint32_t peer;          /* who was asked last */
    uint32_t small;         /* bytes that its answer takes where it may be asked for together with others; or 0 */
};

TAILQ_HEAD(read_list, store_read); /* in the order in which they came */

/* 0: answered. -EINPROGRESS: parked; `done` is called once, from another thread or before this returns, with 0 or
 * -errno. Else -errno. Never waits for the source. */
int store_read(struct store *store, struct store_read *read);

/* Any thread: the caller has the read back, unanswered, and `done` will not be called. False: it is just ending, or
 * going from one to whom it waits for to the next: ask again while `done` does not come. */
bool store_cancel(struct store *store, struct store_read *read);

/* Given a stored value as it lies, the i-th of those asked for, for as long as the call lasts. */
typedef int (*stored_take)(void *user, uint32_t i, const void *bytes, uint32_t length);

/* Other nodes, that keep what this one does not. A read asks the tiers, then the node that keeps the extent, then the
 * source. What this node does not keep never enters its tiers. */
struct store_peers {
    void *user;
    /* Does this node keep the extent that has this byte? Any thread, at any time. */
    bool (*keeps)(void *user, uint32_t file, uint64_t offset);
    /* Bring a span of one extent that is not kept here, or with read->before from who kept it before: -EINPROGRESS:
     * store_fetched will be called once, with the answer filled or an error. Anything else: nobody can be asked now.
     * Never waits. */
    int (*fetch)(void *user, struct store_read *read);
    /* As store_cancel, for what waits there. NULL: nothing can be taken back. */
    bool (*cancel)(void *user, struct store_read *read);
    /* Stored values of one extent that is kept here, from the node that kept it before, each handed to `take`: 0.
     * Waits, but not without end; a thread of the loader's asks. -ENOENT: there was none, or it has not all of them;
     * else they are unavailable now, or what `take` has returned. Some may have been taken. NULL: nobody kept anything
     * before. */
    int (*before)(void *user, uint32_t file, uint32_t value, uint32_t count, stored_take take, void *to);
    /* A load of a pull has ended: 0; -ENOSPC: no tier had room; -ENOENT: who kept it before has not all of it; else it
     * could not be had now. */
    void (*pulled)(void *user, uint32_t number, uint32_t file, uint64_t offset, uint32_t length, int error);
};
/* Before anything is read or staged. */
void store_set_peers(struct store *store, const struct store_peers *peers);
void store_fetched(struct store *store, struct store_read *read, int error);

/* For other nodes: the stored values that a span touches, as they lie in the tiers, checked: `put` is called for each
 * in turn (see struct values_out). -ENOENT: one is not held; some may have been put. Waits for nothing but the tier's
 * storage. */
int store_stored(struct store *store, const struct span *span, stored_put put, void *user);
struct pool *store_pool(struct store *store); /* to open stored values of others: see unpack.h */
/* Have these values, up to ANSWER_VALUES of one extent, loaded as a reader of this node would, but of other nodes only
 * from the one that kept it before: as store_read. Then the tiers hold them and the answer is empty, or no tier keeps
 * them and they are the answer. -ENOENT: they are neither held nor kept here. */
int store_load(struct store *store, struct store_read *read);
bool store_holds(struct store *store, uint32_t file, uint64_t offset); /* the part that has this byte */
/* Give up what is held and not kept of these files; its room comes back in the background. Returns its bytes, raw. */
uint64_t store_trim(struct store *store, uint32_t first, uint32_t files, bool only_count);

/* While samples move. Bytes from…to are an extent of the file. */

/* What this node keeps of them and lacks is to come from the node that kept it before, after all that readers wait for.
 * Returns how often `pulled` will be called with this number (not 0), -ESHUTDOWN or -ENOMEM; `held` counts the bytes
 * that are held already. */
int store_pull(struct store *store, uint32_t number, uint32_t file, uint64_t from, uint64_t to, uint64_t *held);
void store_forget_pull(struct store *store, uint32_t number); /* of what does not run yet nothing is told any more */
bool store_is_stored(struct store *store, uint32_t file, uint64_t from, uint64_t to); /* all of it, where it lasts */
uint64_t store_drop(struct store *store, uint32_t file, uint64_t from, uint64_t to);  /* returns bytes, raw */
uint64_t store_make_room(struct store *store);                                        /* see shard_make_room */
int store_flush(struct store *store);       /* store what is in memory only; waits */
bool store_is_opening(struct store *store); /* a tier is not known yet */

/* Fill the shards from the source. Loads that readers wait for go first. Totals are of what this node is to keep. */
struct stage_progress {
    enum { STAGE_IDLE, STAGE_RUNNING, STAGE_DONE, STAGE_STOPPED, STAGE_FAILED } state;
    int error;                                       /* of the first sample that failed; staging goes on past it */
    uint64_t failed;                                 /* samples */
    uint64_t files, files_total, bytes, bytes_total; /* looked at */
    uint64_t kept;                                   /* raw bytes now held in a tier, of bytes_total */
    uint64_t elapsed;                                /* nanoseconds */
    uint64_t round;                                  /* the greatest that it was started with */
};
/* In a world: this node's share. `round` tells apart the times that all nodes of a world stage together: one that was
 * told of already, or an earlier one, changes nothing; 0 is none. 0 also when it runs already.
 * `chosen`: the files to stage, in this order; NULL: all. If other files are being staged, that is stopped. */
int store_stage_start(struct store *store, uint64_t round, struct samples *chosen);
/* More has become this node's: staging that was done, or runs, goes on with that, now under this round. One that was
 * stopped, or never started, does not. The chosen files are the same. */
int store_stage_again(struct store *store, uint64_t round);
void store_stage_stop(struct store *store);
void store_stage_progress(struct store *store, struct stage_progress *progress);

/* Where a byte of a file is: the tier of its part, or -ENOENT, also where there is no such byte. */
int store_where(struct store *store, uint32_t file, uint64_t offset, enum tier_name *tier);

enum { STORE_COUNTS = 64 << 10, STORE_BUCKETS = 32, STORE_ERRNOS = 134 };
/* Of reads that are not fed, except for `fed`, for `source_` and the tiers. */
struct store_stats {
    uint64_t reads[PLACES], bytes[PLACES];
    uint64_t latency[PLACES][STORE_BUCKETS]; /* READs that took less than 2^i microseconds, not cumulative */
    uint64_t latency_sum[PLACES];            /* nanoseconds */
    uint64_t errors[STORE_ERRNOS];           /* failed reads by errno; of each: */
    uint64_t first_failed[STORE_ERRNOS];     /* 1 + the first file */
    uint64_t failed_at[STORE_ERRNOS];        /* clock_realtime of the last one */
    uint64_t source_samples, source_bytes;
    struct root_state root; /* the source's */
    uint64_t parked;        /* readers waiting now */
    uint64_t waits[PLACES]; /* of them, by what they wait for */
    struct {
        uint64_t reads[PLACES], bytes[PLACES], errors;
        uint64_t waits[PLACES];
    } fed;
    struct tier_status tier[TIERS];
};
void store_stats(struct store *store, struct store_stats *stats);

#endif
