/* A cache of things that are made once for all requests: plans, tables of owners, contents, images.
 *
 * An item is found by its key. The first request for a key makes the item; requests that arrive meanwhile wait for it.
 *
 *   state    another request for its key    becomes
 *   MAKING   waits                          READY by kept_done; removed by kept_fail: a waiting request makes it again
 *   READY    gets a reference               removed to make room, if nobody has a reference
 *
 * If there are more than `places` items, or more than `most` bytes, the least recently used items are removed. The last
 * one used stays, however large it is. Items with references also stay, so the limits may be exceeded. Some items
 * have a mapping or a descriptor: `places` bounds these, since small items do not reach `most`.
 *
 * Threads: any number. No item is made or destroyed with the lock held. */
#ifndef FS_CONTROL_KEPT_H
#define FS_CONTROL_KEPT_H

#include "fs/base/hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct asker;

struct kept_item { /* first field of a cached struct; the other fields are zero when it is to be made */
    struct digest key;
    bool ready;
    unsigned references;
    uint64_t bytes;
    uint64_t used; /* time of the last use */
    TAILQ_ENTRY(kept_item) by_use;
};
TAILQ_HEAD(kept_items, kept_item);

struct kept {
    pthread_mutex_t lock; /* guards all fields below, and the items, except the content of READY ones */
    pthread_cond_t changed;
    void *tree;              /* of the items, by key: tsearch(3) */
    struct kept_items order; /* least recently used first */
    unsigned count, places;
    uint64_t bytes, most;
    uint64_t hits;                             /* references given to READY items */
    uint64_t crowded;                          /* when an item in use was removed for lack of `places`; 0: never */
    size_t size;                               /* of an item */
    void (*item_fini)(struct kept_item *item); /* frees its content */
};

void kept_init(struct kept *kept, size_t size, void (*item_fini)(struct kept_item *item), unsigned places,
               uint64_t most);
void kept_fini(struct kept *kept); /* only when nobody has a reference */

/* 0 and `*item`, a reference: it is READY. 1: the caller must make the item, and pass it to kept_done or kept_fail.
 * -EINTR, -ENOMEM. */
int kept_get(struct kept *kept, const struct digest *key, const struct asker *asker, struct kept_item **item);
/* A reference if the item is READY; else NULL. Never waits. */
struct kept_item *kept_find(struct kept *kept, const struct digest *key);
void kept_done(struct kept *kept, struct kept_item *item, uint64_t bytes); /* the caller keeps its reference */
void kept_fail(struct kept *kept, struct kept_item *item);
void kept_put(struct kept *kept, struct kept_item *item);
bool kept_drop(struct kept *kept); /* removes the least recently used item without references; false: there is none */

/* For callers with rules of their own, with the lock held: */
void kept_use(struct kept *kept, struct kept_item *item);                    /* takes a reference to a READY item */
void kept_charge(struct kept *kept, struct kept_item *item, uint64_t bytes); /* sets the item's bytes */
void kept_remove(struct kept *kept, struct kept_item *item, struct kept_items *gone);
void kept_crowd(struct kept *kept, const struct kept_item *item); /* it is removed for lack of `places` */
/* Wait for `changed`. At time `*until` (clock_now), return whether the asker has given up, and set the next
 * `*until`. */
bool kept_wait(struct kept *kept, const struct asker *asker, uint64_t *until);
/* Without the lock: */
bool kept_crowded(struct kept *kept); /* in the last minute more items than there are places were in use */
void kept_free(struct kept *kept, struct kept_items *gone);

#endif
