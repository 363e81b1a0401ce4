/* What a tier has: its segments, its budget, its state. All parts of the tier use this: read, fill, store, reclaim,
 * restore.
 *
 * Threads: any thread reads (without a lock, except for the last pin of a segment that has left the table) and fills
 * (with `lock`, which it releases while it reads, seals or stores). Only the tier's own thread adds and drops files of
 * segments.
 *
 * Order of locks: stock->lock, then pool->lock; both are held briefly. */
#ifndef FS_STORE_STOCK_H
#define FS_STORE_STOCK_H

#include "fs/store/map.h"
#include "fs/store/pool.h"
#include "fs/store/segment.h"

struct stock {
    /* constant: */
    enum tier_name name;
    struct map *map;
    struct pool *pool;
    char *directory;
    uint64_t capacity;
    bool verify_once;
    size_t segment_bytes; /* size of a staging, and roughly of a segment's file */
    /* set once, before the table has the first segment with a file: */
    struct rocks *rocks;

    struct segments segments;
    _Atomic uint64_t parts, bad_values;
    _Atomic int failing; /* errno of the failing disk, which may recover: no file is removed; 0: none */

    pthread_mutex_t lock;
    pthread_cond_t work; /* signals the tier's thread: a segment to store or drop, worn segments, the end */
    /* signals other threads: a free staging, a stored segment, a completed reclaim, a new state */
    pthread_cond_t changed;
    /* guarded by lock: */
    enum tier_state state;
    int error;
    const char *reason; /* explains the error if necessary; NULL: none */
    uint64_t held, dead, files;
    uint64_t rewritten; /* total bytes of live values that were moved */
    uint32_t next_segment;
    struct segment_list doomed;
    uint64_t busy;     /* when the tier's thread began to store, reclaim or drop; 0: it is idle */
    uint64_t resting;  /* until then nothing is stored, because memory or descriptors lack; 0: no pause */
    uint64_t failures; /* number of such pauses, and the last cause: */
    int failure;
    bool worn; /* a segment is worn */
    /* only used by the tier's thread while it runs: */
    struct segment_list stored;
};

/* `directory` NULL: the tier is absent. Call stock_fini also after a failure. */
int stock_init(struct stock *k, enum tier_name name, const struct tier_config *config, struct map *map,
               struct pool *pool);
void stock_fini(struct stock *k);

struct segment *stock_pin(const struct stock *k, uint32_t number); /* NULL: there is no such segment now */
void stock_unpin(void *segment);                                   /* the last reader releases a closed segment */
void stock_close_segment(struct segment *s);                       /* removes it from the table */

/* Add a stored segment; owns `file`. NULL: no memory. Needs the lock. */
struct segment *stock_add(struct stock *k, struct segment_file *file);
/* removes a stored segment; its file is dropped with its last pin */
void stock_retire(struct stock *k, struct segment *s);
void stock_drop_doomed(struct stock *k);             /* needs the lock, and releases it meanwhile */
void stock_wear(struct stock *k, struct segment *s); /* it has dead values that were not counted yet */

bool stock_drop_part(struct stock *k, uint64_t part, uint64_t entry); /* false: it was not cached any more */

void stock_set_state(struct stock *k, enum tier_state state, int error, const char *reason);
/* Admit nothing more. Unless the error is about room, existing files are not touched any more. */
void stock_close(struct stock *k, int error);
void stock_rest(struct stock *k, int error); /* needs the lock. A pause, because memory or descriptors lack */

/* Errors that say nothing about the stored data or its disk: a retry may succeed. */
static inline bool stock_may_recover(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN || error == -EINTR;
}

#endif
