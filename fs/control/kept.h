/* Things that are made once for all requests, and kept for later ones: plans, tables of owners, contents, pictures.
 *
 * An item is found by its key. The first request for a key makes the item; requests that come meanwhile wait for it.
 *
 *   state    another request for its key    becomes
 *   MAKING   waits                          READY by kept_done; gone by kept_fail: a request that waits makes it again
 *   READY    gets a reference               gone when it must make room, and nobody has a reference
 *
 * Items make room where there are more than `places`, or more than `most` bytes: the least recently used first. The one
 * that was used last stays, however large it is. There may be more while they are referred to.
 *
 * Threads: any number. No item is made or destroyed under the lock. */
#ifndef FS_CONTROL_KEPT_H
#define FS_CONTROL_KEPT_H

#include "fs/base/hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct asker;

struct kept_item { /* the first field of what is kept; the others are zeros when it is to be made */
    struct digest key;
    bool ready;
    unsigned references;
    uint64_t bytes;
    TAILQ_ENTRY(kept_item) by_use;
};
TAILQ_HEAD(kept_items, kept_item);

struct kept {
    pthread_mutex_t lock; /* of all below, and of what is in the items, but not what a READY one is */
    pthread_cond_t changed;
    void *tree;              /* of the items, by key: tsearch(3) */
    struct kept_items order; /* least recently used first */
    unsigned count, places;
    uint64_t bytes, most;
    uint64_t hits;                             /* references given to READY items */
    size_t size;                               /* of an item */
    void (*item_fini)(struct kept_item *item); /* what is in it */
};

void kept_init(struct kept *kept, size_t size, void (*item_fini)(struct kept_item *item), unsigned places,
               uint64_t most);
void kept_fini(struct kept *kept); /* nobody refers to an item */

/* 0 and `*item`, a reference: it is READY. 1 and one that the caller must make, and give to kept_done or kept_fail.
 * -EINTR, -ENOMEM. */
int kept_get(struct kept *kept, const struct digest *key, const struct asker *asker, struct kept_item **item);
/* The same where it is READY; else NULL. It does not wait. */
struct kept_item *kept_find(struct kept *kept, const struct digest *key);
void kept_done(struct kept *kept, struct kept_item *item, uint64_t bytes); /* the caller's reference stays */
void kept_fail(struct kept *kept, struct kept_item *item);
void kept_put(struct kept *kept, struct kept_item *item);
bool kept_drop(struct kept *kept); /* the least recently used that nobody refers to; false: there is none */

/* For callers with rules of their own. With the lock: */
void kept_use(struct kept *kept, struct kept_item *item);                    /* a reference to a READY one */
void kept_charge(struct kept *kept, struct kept_item *item, uint64_t bytes); /* it takes this many now */
void kept_remove(struct kept *kept, struct kept_item *item, struct kept_items *gone);
/* Waits for `changed`. At `*until`, a time of clock_now(), it asks whether the asker has given up, returns that, and
 * moves `*until` on. */
bool kept_wait(struct kept *kept, const struct asker *asker, uint64_t *until);
/* Without it: */
void kept_free(struct kept *kept, struct kept_items *gone);

#endif
