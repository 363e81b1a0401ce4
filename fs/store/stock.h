/* What a tier has: its segments, its budget, its state. Those who read, fill, store, reclaim and restore meet here.
 *
 * Threads. Any thread reads (no lock except for the last pin of a segment that has left the table) and fills (under
 * `lock`, never while it reads, seals or stores). The tier's own thread alone adds and drops segments' files.
 *
 * Order of locks: stock->lock, then pool->lock; both are held for moments only. */
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
    size_t segment_bytes; /* of a staging, and about that of a segment's file */
    /* set once, before the first segment of a file is in the table: */
    struct rocks *rocks;

    struct segments segments;
    _Atomic uint64_t parts, bad_values;
    _Atomic int failing; /* the errno of its disk, which may pass: no file is removed any more; 0: none */

    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the tier's thread: a segment to be stored or dropped, worn ones, the end */
    pthread_cond_t changed; /* for all others: a staging is free, a segment stored, a reclaim done, another state */
    /* lock: */
    enum tier_state state;
    int error;
    const char *reason; /* in words, where the error alone does not tell; NULL: none */
    uint64_t held, dead, files;
    uint64_t rewritten; /* bytes of live values that were moved, so far */
    uint32_t next_segment;
    struct segment_list doomed;
    uint64_t busy;     /* since when the tier's thread stores, reclaims or drops; 0: it does not */
    uint64_t resting;  /* until then nothing is stored, for want of what may come back; 0: not */
    uint64_t failures; /* so often it came to that, the last time for this: */
    int failure;
    bool worn; /* a segment is */
    /* the tier's thread alone, once it runs: */
    struct segment_list stored;
};

/* `directory` NULL: the tier is absent. Fini also of one whose init failed. */
int stock_init(struct stock *k, enum tier_name name, const struct tier_config *config, struct map *map,
               struct pool *pool);
void stock_fini(struct stock *k);

struct segment *stock_pin(const struct stock *k, uint32_t number); /* NULL: no such segment now */
void stock_unpin(void *segment);                                   /* the last reader of a closed one lets it go */
void stock_close_segment(struct segment *s);                       /* not in the table any more */

/* lock. A stored segment; takes `file`. NULL: no memory. */
struct segment *stock_add(struct stock *k, struct segment_file *file);
void stock_retire(struct stock *k, struct segment *s); /* takes a stored segment out; its file goes with its last pin */
void stock_drop_doomed(struct stock *k);               /* lock, which is given up meanwhile */
void stock_wear(struct stock *k, struct segment *s);   /* it has dead values that were not counted yet */

bool stock_drop_part(struct stock *k, uint64_t part, uint64_t entry); /* false: it was not there any more */

void stock_set_state(struct stock *k, enum tier_state state, int error, const char *reason);
/* Nothing is taken any more; and unless it is for want of room, what is there is left as it is. */
void stock_close(struct stock *k, int error);
void stock_rest(struct stock *k, int error); /* lock. A pause, for want of memory or descriptors */

/* An error that says nothing about what is stored or where: what failed may go well in a while. */
static inline bool stock_may_recover(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN || error == -EINTR;
}

#endif
