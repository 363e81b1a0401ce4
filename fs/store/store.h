/* The store: reads the bytes of files from wherever they are. It assembles the layers, loads what no tier has, and
 * caches what has room.
 *
 *   store_read ─▶ RAM tier ─▶ SSD tier ─┬─ owned here ────────▶ loader ─▶ source, and into a tier
 *                                       └─ another node's ───▶ that node, or the source without caching
 *
 * While samples move (fs/world/FORMAT), the bytes of an extent that is owned here may still be at its previous owner:
 * the loader asks that node first. */
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
    int source; /* descriptor of the source's root, borrowed */
    /* If files differ from the source (`resize=`): the source's own catalog, with the same numbers, and a function that
     * creates a layer with the changed bytes over the source; the layer owns the source. Else NULL. */
    const struct catalog *original;
    int (*over_source)(void *user, struct layer *below, struct layer **layer);
    root_open *source_reopen; /* NULL: it cannot be opened again */
    void *source_user;
    struct tier_config tier[TIERS];
    int zstd_level; /* 0: off */
    int source_threads;
    uint64_t source_rate; /* maximum bytes per second that are read from the source; 0: unlimited. See rate.h */
    /* STORE_COUNTS bytes, aligned to a cache line, zeros at first: the counters of reads. The next store continues
     * them. NULL: start from zero. */
    void *counts;
    struct feed_served *served; /* fs/wire/feed.h: counters of the feeder's reads. NULL: own memory */
    int disk_callers;           /* how many threads in store_read may concurrently wait for an SSD */
    /* For tests: fault layers, separated by semicolons, each specified as in fs/store/fault.c. They apply to the source
     * or, if they begin with on=ram, on=ssd or on=source, to that. NULL: none */
    const char *faults;
};

int store_open(const struct store_config *config, struct store **store);
void store_close(struct store *store); /* first ends parked reads with -ESHUTDOWN */

enum place { PLACE_RAM, PLACE_SSD, PLACE_PEER, PLACE_SOURCE, PLACES };
extern const char *const place_names[PLACES];

/* One read. It belongs to the store from the call of store_read until `done`, or until store_read returns anything
 * other than -EINPROGRESS. */
struct store_read {
    struct span span;
    bool fed; /* a read of the feeder: all others take precedence wherever it waits */
    void (*done)(struct store_read *read, int error);
    /* NULL, or called once by store_read before anything that may take long. From then on, until `done` is called or
     * store_read returns anything other than -EINPROGRESS, store_cancel may be called. */
    void (*waits)(struct store_read *read);
    /* the answer: */
    struct answer answer; /* release it after use */
    enum place place;     /* where it came from */
    /* private to the store: */
    TAILQ_ENTRY(store_read) parked; /* where it waits */
    uint64_t asked;                 /* when it began to wait for a slot */
    bool pulled;                    /* no reader waits for it: see fair.h */
    uint64_t began;
    uint64_t lacked;    /* 1 + offset of the last byte that it parked for; 0: never parked */
    int tries;          /* how often it made no progress beyond that */
    bool waiting;       /* `waits` was called */
    bool here;          /* for another node: see store_load */
    bool before;        /* owned here, and to be asked of the previous owner */
    enum place brought; /* the slowest place that loads it waited for came from */
    bool quiet;         /* not counted */
    /* private to the peers: */
    struct peer_pull *pull; /* a thread waits for it, not the store */
    uint32_t peer;          /* the node that was asked last */
    uint32_t small;         /* bytes of its answer, if it may be asked for together with others; else 0 */
};

TAILQ_HEAD(read_list, store_read); /* in order of arrival */

/* 0: answered. -EINPROGRESS: parked; `done` is called once, with 0 or -errno, from another thread or before this
 * returns. Else -errno. Never waits for the source. */
int store_read(struct store *store, struct store_read *read);

/* Any thread. True: the caller has the read back, unanswered, and `done` will not be called. False: it is just ending,
 * or moves from one queue to another: repeat until `done` is called. */
bool store_cancel(struct store *store, struct store_read *read);

/* Called with the i-th requested value in stored form; the bytes are valid during the call. */
typedef int (*stored_take)(void *user, uint32_t i, const void *bytes, uint32_t length);

/* Other nodes, which own what this node does not. A read asks the tiers, then the owner, then the source. What this
 * node does not own never enters its tiers. */
struct store_peers {
    void *user;
    /* Does this node own the extent with this byte? Any thread, at any time. */
    bool (*keeps)(void *user, uint32_t file, uint64_t offset);
    /* Fetch a span of one extent from its owner or, with read->before, from the previous owner. -EINPROGRESS:
     * store_fetched will be called once, with the answer or an error. Otherwise nobody can be asked now. Never
     * waits. */
    int (*fetch)(void *user, struct store_read *read);
    /* Like store_cancel, for reads that wait there. NULL: they cannot be cancelled. */
    bool (*cancel)(void *user, struct store_read *read);
    /* Get stored values of one extent, owned here, from its previous owner; each is handed to `take`: 0. Called by
     * threads of the loader; waits, with a timeout. -ENOENT: there is no previous owner, or it lacks some; else they
     * are unavailable now, or the result of `take`. Some may have been taken. NULL: there are no previous owners. */
    int (*before)(void *user, uint32_t file, uint32_t value, uint32_t count, stored_take take, void *to);
    /* A load of a pull has ended: 0; -ENOSPC: no tier had room; -ENOENT: the previous owner lacks some of it; otherwise
     * it is unavailable now. */
    void (*pulled)(void *user, uint32_t number, uint32_t file, uint64_t offset, uint32_t length, int error);
};
/* Call before anything is read or staged. */
void store_set_peers(struct store *store, const struct store_peers *peers);
void store_fetched(struct store *store, struct store_read *read, int error);

/* For other nodes: the stored values of a span, checked; `put` is called for each in turn (see struct values_out).
 * -ENOENT: one is not cached; some may have been put. Waits only for the tier's storage. */
int store_stored(struct store *store, const struct span *span, stored_put put, void *user);
struct pool *store_pool(struct store *store); /* to unpack values of other nodes: see unpack.h */
/* Load these values, up to ANSWER_VALUES of one extent, as for a reader here; of other nodes, only the previous owner
 * is asked. Like store_read. Then the tiers have them and the answer is empty; or no tier does, and the answer has
 * them. -ENOENT: they are neither cached nor owned here. */
int store_load(struct store *store, struct store_read *read);
bool store_holds(struct store *store, uint32_t file, uint64_t offset); /* the part with this byte */
/* Drop what is cached but not owned here of these files; its room is reclaimed in the background. Returns the raw
 * bytes. */
uint64_t store_trim(struct store *store, uint32_t first, uint32_t files, bool only_count);

/* While samples move. Bytes from…to are an extent of the file. */

/* Pull the missing bytes of this extent, owned here, from its previous owner, after all that readers wait for. Returns
 * how often `pulled` will be called with this number (not 0); -ESHUTDOWN or -ENOMEM. `held` counts the bytes that are
 * already cached. */
int store_pull(struct store *store, uint32_t number, uint32_t file, uint64_t from, uint64_t to, uint64_t *held);
void store_forget_pull(struct store *store, uint32_t number); /* loads that have not begun will not be reported */
/* all of it, in files of segments */
bool store_is_stored(struct store *store, uint32_t file, uint64_t from, uint64_t to);
uint64_t store_drop(struct store *store, uint32_t file, uint64_t from, uint64_t to); /* returns the raw bytes */
uint64_t store_make_room(struct store *store);                                       /* see shard_make_room */
int store_flush(struct store *store);       /* stores what is only in memory; waits */
bool store_is_opening(struct store *store); /* a tier is not open yet */

/* Fill the shards from the source. Loads that readers wait for take precedence. Totals: what this node owns. */
struct stage_progress {
    enum { STAGE_IDLE, STAGE_RUNNING, STAGE_DONE, STAGE_STOPPED, STAGE_FAILED } state;
    int error;                                       /* of the first sample that failed; staging continues */
    uint64_t failed;                                 /* samples */
    uint64_t files, files_total, bytes, bytes_total; /* done so far, and in all */
    uint64_t kept;                                   /* raw bytes of bytes_total that a tier now has */
    uint64_t elapsed;                                /* nanoseconds */
    uint64_t round;                                  /* the highest round that it was started with */
};
/* In a world: this node's share. `round` identifies a stage of all nodes together: a known or older round changes
 * nothing; 0: none. Returns 0 also if it runs already. `chosen`: the files to stage, in this order; NULL: all. If other
 * files are being staged, that is stopped. */
int store_stage_start(struct store *store, uint64_t round, struct samples *chosen);
/* This node owns more than before: a stage that is done or runs continues with that, under this round, with the same
 * chosen files. One that was stopped or never started does not. */
int store_stage_again(struct store *store, uint64_t round);
void store_stage_stop(struct store *store);
void store_stage_progress(struct store *store, struct stage_progress *progress);

/* Where a byte is: the tier of its part; or -ENOENT, also if there is no such byte. */
int store_where(struct store *store, uint32_t file, uint64_t offset, enum tier_name *tier);

enum { STORE_COUNTS = 64 << 10, STORE_BUCKETS = 32, STORE_ERRNOS = 134 };
/* The feeder's reads count only in `fed`, `source_` and the tiers. */
struct store_stats {
    uint64_t reads[PLACES], bytes[PLACES];
    uint64_t latency[PLACES][STORE_BUCKETS]; /* READs that took less than 2^i microseconds; not cumulative */
    uint64_t latency_sum[PLACES];            /* nanoseconds */
    uint64_t errors[STORE_ERRNOS];           /* failed reads by errno; for each: */
    uint64_t first_failed[STORE_ERRNOS];     /* 1 + number of the first file */
    uint64_t failed_at[STORE_ERRNOS];        /* clock_realtime of the last failure */
    uint64_t source_samples, source_bytes;
    struct root_state root; /* of the source */
    uint64_t parked;        /* readers that wait now */
    uint64_t waits[PLACES]; /* the same, by what they wait for */
    struct {
        uint64_t reads[PLACES], bytes[PLACES], errors;
        uint64_t waits[PLACES];
    } fed;
    struct tier_status tier[TIERS];
};
void store_stats(struct store *store, struct store_stats *stats);

#endif
