/* The memory of requests: what is uploaded, planned and replied, of all who ask together.
 *
 * It is charged before it is allocated, so that no request can take more than the mount's `request_memory=`. Plans and
 * texts that are kept for the next who asks are charged as well, and go when their memory is needed. Users other than
 * the mount's owner have no budget of their own: at most a quarter of it is in the hands of their requests.
 *
 * Any thread. The budget's lock is innermost; what a charge is made with is the caller's to guard. */
#ifndef FS_CONTROL_BUDGET_H
#define FS_CONTROL_BUDGET_H

#include "fs/base/str.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    pthread_mutex_t lock;
    uint64_t most;
    uint64_t used, others;         /* lock; others: the part of `used` that others' requests have in progress */
    bool (*make_room)(void *user); /* drops one thing that is only kept; false: there is none. NULL: never */
    void *user;
};

void budget_init(struct budget *budget, uint64_t most, bool (*make_room)(void *user), void *user);
void budget_resize(struct budget *budget, uint64_t most);
void budget_fini(struct budget *budget);

/* What somebody has of a budget. All zero: of none, and without a bound. */
struct charge {
    struct budget *budget;
    uint64_t bytes;
    bool other; /* in the hands of another user than the owner */
};

/* Nothing yet, for another thing in the same hands as that one (which may be NULL: of none). */
struct charge charge_like(const struct charge *charge);
/* So many more. 0; or -ENOMEM, nothing changed, and `why` (which may be NULL) tells. */
int charge_add(struct charge *charge, uint64_t bytes, struct str *why);
/* At least so many in all, in steps, for a text that grows. `charge` may be NULL: of none. */
int charge_reach(struct charge *charge, uint64_t bytes, struct str *why);
void charge_cut(struct charge *charge, uint64_t bytes); /* down to so many */
void charge_keep(struct charge *charge);                /* it is in nobody's hands any more */
struct charge charge_take(struct charge *charge);       /* leaves nothing */
void charge_fini(struct charge *charge);

#endif
