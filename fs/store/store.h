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

#include "fs/store/read.h"
#include "fs/store/stats.h"
#include "fs/store/store-stage.h"
#include "fs/wire/tier-share.h"

struct feed_served;

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
    int zstd_level;     /* 0: off */
    bool admits_others; /* modes that the source reduces take effect: see modes.h */
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

/* With `admits_others`: look at the source in rounds (mode-round.h), and call `changed` for each inode whose mode in
 * the mount changes (modes.h). 0 or -errno. */
struct store_watch {
    void (*changed)(void *user, uint64_t ino);
    unsigned (*nodes)(void *user); /* of the world */
    void *user;
};
int store_watch_modes(struct store *store, const struct store_watch *watch);
/* The mode to be shown instead of this one of the catalog. `store` may be NULL. */
mode_t store_limit_mode(struct store *store, uint64_t ino, mode_t mode);
bool store_has_reduced(struct store *store); /* the mode of any inode */

/* 0: answered. -EINPROGRESS: parked; `done` is called once, with 0 or -errno, from another thread or before this
 * returns. Else -errno. Never waits for the source. */
int store_read(struct store *store, struct store_read *read);

/* Any thread. True: the caller has the read back, unanswered, and `done` will not be called. False: it is just ending,
 * or moves from one queue to another: repeat until `done` is called. */
bool store_cancel(struct store *store, struct store_read *read);

/* Call before anything is read or staged. */
void store_set_peers(struct store *store, const struct store_peers *peers);
void store_fetched(struct store *store, struct store_read *read, int error);

/* For other nodes: the stored values of a span, checked; `put` is called for each in turn (see struct values_out), and
 * with `verify` checked even if verified before. -ENOENT: one is not cached; some may have been put. Waits only for the
 * tier's storage. */
int store_stored(struct store *store, const struct span *span, bool verify, stored_put put, void *user);
/* For the courier: see shard_share. */
int store_share(struct store *store, struct message_shared *message, int fd[SHARE_FDS]);
int store_share_segment(struct store *store, uint32_t number, struct message_segment *message, int fd[SHARE_FDS]);
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

/* Where a byte is: the tier of its part; or -ENOENT, also if there is no such byte. */
int store_where(struct store *store, uint32_t file, uint64_t offset, enum tier_name *tier);

void store_stats(struct store *store, struct store_stats *stats);

#endif
