/* The memory budget of requests: uploads, plans and replies of all users together.
 *
 * Memory is charged before it is allocated, so that no request can use more than the mount's `request_memory=`. Cached
 * plans and texts are also charged; they are dropped when their memory is needed. Users other than the mount's owner
 * have no budget of their own: together, their requests get at most a quarter of it.
 *
 * Any thread. The budget's lock is innermost. The caller guards its own charges. */
#ifndef FS_CONTROL_BUDGET_H
#define FS_CONTROL_BUDGET_H

#include "fs/base/str.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    pthread_mutex_t lock;
    uint64_t most;
    uint64_t used, others;         /* lock; others: the part of `used` that requests of other users have in progress */
    bool (*make_room)(void *user); /* drops one cached object; false: there is none. NULL: nothing is cached */
    void *user;
};

void budget_init(struct budget *budget, uint64_t most, bool (*make_room)(void *user), void *user);
void budget_resize(struct budget *budget, uint64_t most);
void budget_fini(struct budget *budget);

/* A user's share of a budget. All zero: no budget, unlimited. */
struct charge {
    struct budget *budget;
    uint64_t bytes;
    bool other; /* for a user other than the owner */
};

/* A new, empty charge to the same budget and user as `charge`; NULL: to no budget. */
struct charge charge_like(const struct charge *charge);
/* Add bytes. 0; or -ENOMEM, nothing changed, and `why` (may be NULL) says why. */
int charge_add(struct charge *charge, uint64_t bytes, struct str *why);
/* Grow to at least `bytes` in steps, for a text that grows. `charge` may be NULL: no budget. */
int charge_reach(struct charge *charge, uint64_t bytes, struct str *why);
void charge_cut(struct charge *charge, uint64_t bytes); /* shrinks to `bytes` */
void charge_keep(struct charge *charge);                /* no request has it in progress any more */
struct charge charge_take(struct charge *charge);       /* leaves an empty charge */
void charge_fini(struct charge *charge);
#define CLEANUP_CHARGE __attribute__((cleanup(charge_fini)))

#endif
