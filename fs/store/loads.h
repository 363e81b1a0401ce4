/* The loads in flight: which bytes of which file are on their way, and who waits for them. A plain data structure: the
 * loader's lock guards it. */
#ifndef FS_STORE_LOADS_H
#define FS_STORE_LOADS_H

#include "fs/store/fair.h"

/* Who has something loaded though no reader waits for it. */
enum load_wish { LOAD_STAGE, LOAD_PULL, LOAD_WISHES };

/* A run of whole parts of one file that no tier held and no other load brings; it never crosses a multiple of
 * PIECE_BYTES in the file.
 *
 *   queued ──▶ running ──▶ gone       in the table from beginning to end
 *     `queued` says in which queue; readers join in both states, and move a queued one to the best queue of theirs */
struct load {
    LIST_ENTRY(load) same_bucket;
    TAILQ_ENTRY(load) same_queue;
    struct load_queue *queued; /* NULL: running */
    struct read_list waiting;
    uint64_t offset;
    uint32_t file, length;
    uint32_t told[LOAD_WISHES]; /* who wants to hear of its end: the number of the stage, and of the pull; 0: nobody */
    enum place from;            /* running: where its bytes come from */
    bool pulled;                /* nobody wants it from the source: if no other node has it, it ends */
};

struct load_queue {
    TAILQ_HEAD(, load) loads;
    int count;
};
void load_queue_init(struct load_queue *queue);
void load_queue_add(struct load_queue *queue, struct load *load); /* takes it out of the one it was in */
struct load *load_queue_take(struct load_queue *queue);           /* the first, or NULL */
void load_queue_leave(struct load *load);                         /* the one it is in, if any */

enum { LOAD_BUCKETS = 1024 };
struct loads {
    LIST_HEAD(, load) bucket[LOAD_BUCKETS];
};

struct load *loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length); /* NULL: no memory */
struct load *loads_at(struct loads *loads, uint32_t file, uint64_t offset); /* the one that brings this byte, or NULL */
void loads_remove(struct load *load); /* in no queue any more; the caller frees it */

/* The ends of the latest loads of large files: a read that begins at one of them is one of a sequence. */
enum { RECENT_ENDS = 64 };
struct recent {
    struct {
        uint64_t end;
        uint32_t file;
    } load[RECENT_ENDS];
    unsigned next;
};
/* Takes the place of the one that ended where this begins. */
void recent_add(struct recent *recent, uint32_t file, uint64_t begin, uint64_t end);
bool recent_follows(const struct recent *recent, uint32_t file, uint64_t begin);

#endif
