/* A tier: one RocksDB of segments, its budget, and the thread that stores and reclaims segments.
 *
 * Threads. Any thread reads (tier-get.c; no lock but for the last pin of a segment that has left the table) and fills
 * (tier-fill.c; under `lock`, never while reading, sealing or storing). One thread of the tier's own opens the database
 * when it is locked at first (restore.c), writes sealed segments (builder.c) and moves live values out of worn ones
 * (reclaim.c); it alone adds and drops segments' files.
 *
 * Order of locks: tier->lock, then pool->lock; both are held for moments only. */
#ifndef FS_STORE_TIER_H
#define FS_STORE_TIER_H

#include "fs/store/index.h"
#include "fs/store/known.h"
#include "fs/store/map.h"
#include "fs/store/match.h"
#include "fs/store/pool.h"
#include "fs/store/rocks.h"
#include "fs/store/segment.h"
#include "fs/store/shard.h"

#include <errno.h>
#include <pthread.h>

enum {
    STAGINGS = 3,        /* a tier has at most so many: one filled, one stored, one between */
    VALUE_COST = 104,    /* at most this much of a segment's file goes with each value: keys, index, our record */
    SEGMENT_COST = 8192, /* and this with the segment */
    VALUE_ALIGN = 64,    /* in a staging */
};

/* What the tiers of a shard have in common. */
struct common {
    const struct catalog *catalog;
    const struct cut *parts;
    struct map map;
    struct pool pool;
};

struct tier {
    struct layer layer;
    /* constant: */
    enum tier_name name;
    struct common *common;
    char *directory;
    uint64_t capacity;
    size_t segment_bytes; /* of a staging, and about that of a segment's file */
    /* set once, before the first segment of a file is in the table: */
    struct rocks *rocks;
    int lock_fd;

    struct segments segments;
    _Atomic uint64_t parts, bad_values;

    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the tier's thread: a segment to be stored or dropped, worn ones, the end */
    pthread_cond_t changed; /* for all others: a staging is free, a segment stored, a reclaim done, another state */
    /* lock: */
    enum tier_state state;
    int error;
    uint64_t held, dead, files;
    uint32_t next_segment;
    struct segment *open;
    struct segment *staged[STAGINGS];  /* who has the staging, NULL: nobody */
    struct staging *staging[STAGINGS]; /* made when first needed */
    int stagings;                      /* how many there may be */
    bool making;                       /* one is being made, without the lock */
    struct segment *doomed;
    uint64_t touched;  /* when the open segment last gave a room or got one back */
    uint64_t resting;  /* until then nothing is stored, for want of what may come back; 0: not */
    uint64_t failures; /* so often it came to that, the last time for this: */
    int failure;
    bool worn, stop;
    uint64_t reclaims_asked, reclaims_done;
    /* the tier's thread alone, once it runs: */
    struct segment *stored;
    pthread_t thread;
    bool running;
};

int tier_create(enum tier_name name, const struct tier_config *config, struct common *common, struct tier **tier);
void tier_destroy(struct tier *tier); /* stores what is staged */

size_t tier_segment_bytes(uint64_t capacity);
uint64_t tier_overhead(uint64_t capacity);

int tier_reserve(struct tier *t, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
int tier_commit(struct tier *t, struct value_codec_state *codec, struct room *room);
void tier_abandon(struct tier *t, struct room *room);
int tier_flush(struct tier *t);
int tier_reclaim(struct tier *t);
void tier_get_status(struct tier *t, struct tier_status *status);

/* Hand out stored values of a file, from `value` on, as long as they are held here, at most ANSWER_VALUES: how many, or
 * -ENOENT where that is the first one already. `put` is told which, from 0. */
typedef void (*tier_put)(void *user, uint32_t i, const void *bytes, uint32_t length);
int tier_stored(struct tier *t, uint32_t file, uint32_t value, uint32_t count, tier_put put, void *user);

/* Between the files of the tier: */
int tier_get(struct layer *layer, const struct span *span, struct answer *answer);
void *tier_run(void *tier);     /* the tier's thread */
void tier_open(struct tier *t); /* leaves the state LOCKED where it is to be tried again */
int tier_store(struct tier *t, struct segment *s);
int tier_reclaim_round(struct tier *t); /* an error: it is to be tried again */
bool tier_wants_merge(const struct tier *t);
/* A value of a stored segment, or its index record (INDEX_PLACE): by a cursor of the caller's, where it is not at hand.
 * NULL at first, closed by the caller after use. */
int tier_stored_value(struct tier *t, const struct segment *s, uint32_t place, struct rocks_cursor **cursor,
                      const void **bytes, size_t *n);
void tier_seal(struct tier *t); /* lock; there is an open segment */
void tier_close_admission(struct tier *t, int error);
bool tier_drop_part(struct tier *t, uint64_t part, uint64_t entry); /* false: it was not there any more */
void tier_segment_free(struct segment *s);                          /* its last pin is gone */
/* lock; takes `known`, also when there is no memory: NULL */
struct segment *tier_add_stored(struct tier *t, uint32_t number, uint64_t bytes, struct known *known);
void tier_retire(struct tier *t, struct segment *s); /* takes a stored segment out; its file goes with its last pin */

/* A new segment's file, value by value in the order of places; then its index record, and what is known of it. After
 * begin or end have failed, too: fini. */
struct tier_writer {
    struct tier *tier;
    uint32_t number;
    struct rocks_writer *rocks;
    struct index index;
    struct known *known;
};
int tier_writer_begin(struct tier *t, uint32_t number, struct tier_writer *w);
int tier_writer_put(struct tier_writer *w, uint32_t place, uint32_t file, uint32_t value, const void *bytes,
                    uint32_t n);
int tier_writer_end(struct tier_writer *w, uint64_t *bytes, struct known **known);
void tier_writer_fini(struct tier_writer *w);
void tier_give_file(const struct tier *t, struct known *known, int fd, uint64_t bytes); /* takes `fd`; -1: none */

/* A stored segment's index, with the files' numbers of today's catalog: a run whose file is no more, or was changed,
 * has NO_FILE. `match` is made when first needed; the caller destroys it. */
#define NO_FILE UINT32_MAX
int tier_read_index(struct tier *t, const struct segment *s, struct index *index, struct match **match);

/* An error that says nothing about what is stored or where: what failed may go well in a while. */
static inline bool tier_will_pass(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN || error == -EINTR;
}

static inline uint64_t file_values(const struct catalog *c, uint32_t file)
{
    return (catalog_file(c, file).size + VALUE_BYTES - 1) / VALUE_BYTES;
}

static inline uint32_t value_raw(const struct catalog *c, uint32_t file, uint64_t value)
{
    uint64_t left = catalog_file(c, file).size - value * VALUE_BYTES;
    return left < VALUE_BYTES ? (uint32_t)left : VALUE_BYTES;
}

/* Is it of a file that is not held as a whole? Then its raw values are kept in blocks: it may be read at random. */
static inline bool file_in_blocks(const struct catalog *c, uint32_t file)
{
    return catalog_file(c, file).size > PIECE_BYTES;
}

/* How many values the part has that begins with this one. */
static inline uint32_t part_values(const struct catalog *c, uint32_t file)
{
    return catalog_file(c, file).size <= PIECE_BYTES ? (uint32_t)file_values(c, file) : 1;
}

#endif
