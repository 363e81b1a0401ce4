/* The loads in progress: which bytes of which file are being loaded, and which reads wait for them. The loader's lock
 * guards this. */
#ifndef FS_STORE_LOADS_H
#define FS_STORE_LOADS_H

#include "fs/store/fair.h"

/* Causes of a load without waiting readers. */
enum load_wish { LOAD_STAGE, LOAD_PULL, LOAD_WISHES };

/* A load of consecutive whole parts of one file that no tier has and no other load brings. It does not cross a multiple
 * of PIECE_BYTES.
 *
 *   queued ──▶ running ──▶ gone       it is in the table all the time
 *     `queued` is its queue. Readers may join in both states; they move a queued load to the best of their queues */
struct load {
    LIST_ENTRY(load) same_bucket;
    TAILQ_ENTRY(load) same_queue;
    struct load_queue *queued; /* NULL: it runs */
    struct read_list waiting;
    uint64_t offset;
    uint32_t file, length;
    uint32_t told[LOAD_WISHES]; /* number of the stage, and of the pull, that want to know its end; 0: none */
    enum place from;            /* while it runs: the source of its bytes */
    bool pulled;                /* only a pull: if no other node has the bytes, the load ends */
};

struct load_queue {
    TAILQ_HEAD(, load) loads;
    int count;
};
void load_queue_init(struct load_queue *queue);
void load_queue_add(struct load_queue *queue, struct load *load); /* removes it from its previous queue */
struct load *load_queue_take(struct load_queue *queue);           /* removes the first; or NULL */
void load_queue_leave(struct load *load);                         /* removes it from its queue, if any */

enum { LOAD_BUCKETS = 1024 };
struct loads {
    LIST_HEAD(, load) bucket[LOAD_BUCKETS];
};

struct load *loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length); /* NULL: no memory */
/* the load that brings this byte, or NULL */
struct load *loads_at(struct loads *loads, uint32_t file, uint64_t offset);
void loads_remove(struct load *load); /* it must be in no queue; the caller frees it */

/* Where the latest loads of large files ended: a read that begins there is part of a sequential read. */
enum { RECENT_ENDS = 64 };
struct recent {
    struct {
        uint64_t end;
        uint32_t file;
    } load[RECENT_ENDS];
    unsigned next;
};
/* Replaces the entry that ends where this one begins. */
void recent_add(struct recent *recent, uint32_t file, uint64_t begin, uint64_t end);
bool recent_follows(const struct recent *recent, uint32_t file, uint64_t begin);

#endif
