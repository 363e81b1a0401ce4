/* Plans that were made, so that what the ranks of a node ask for is planned once.
 *
 * A plan is found by its key, the hash of all that it is made of. Who asks for one that is not there makes it; who asks
 * meanwhile waits for it. A few are kept (the current epoch's and the next one's), as long as together they are not too
 * large; the least recently asked for goes first.
 *
 *   state     who asks                              becomes
 *   MAKING    waits for `changed`                   READY by plans_made; gone by plans_failed, and one of those who
 *                                                   wait makes it in its place
 *   READY     gets it                               gone when there is no room and nobody reads it
 *
 * Where all places are taken by plans in the making, or in use, who asks waits for one. */
#ifndef FS_CONTROL_PLANS_H
#define FS_CONTROL_PLANS_H

#include "fs/control/plan-memory.h"
#include "fs/control/protocol.h"
#include "fs/plan/epoch-plan.h"

#include <pthread.h>

enum { PLANS_KEPT = 4 };

struct planned {
    struct digest key;
    struct digest layout;
    uint64_t epoch;
    uint32_t batch;
    enum plan_mode mode;
    bool costed; /* ranks were made equal in cost */
    struct plan_shape shape;
    struct plan_summary summary;
    struct plan_memory memory;
    uint32_t *lists; /* in it, of all ranks */
    bool ready;
    unsigned references; /* plans' lock */
    uint64_t used;       /* when it was asked for last: a count */
};

struct plans {
    pthread_mutex_t lock;   /* of all below, and of each plan's state; not of what a READY one is */
    pthread_cond_t changed; /* a plan became READY or went */
    struct planned *plan[PLANS_KEPT];
    uint64_t most; /* bytes of lists that are kept, except those in files */
    uint64_t asked, made, misplaced;
    struct plan_summary last; /* of the plan that was made last */
};

void plans_init(struct plans *plans, uint64_t most);
void plans_fini(struct plans *plans);

/* 0 and `*planned`, a reference: it is READY. 1 and one that the caller must make and give to plans_made or
 * plans_failed. -EINTR, -ENOMEM. */
int plans_get(struct plans *plans, const struct digest *key, const struct asker *asker, struct planned **planned);
/* One that is READY, a reference, by what its summary says; NULL: none is kept. */
struct planned *plans_find(struct plans *plans, const struct digest *digest);
void plans_made(struct plans *plans, struct planned *planned); /* it stays referred to */
void plans_failed(struct plans *plans, struct planned *planned);
void plans_put(struct plans *plans, struct planned *planned);
bool plans_drop(struct plans *plans); /* the least recently asked for that nobody reads; false: there is none */

#endif
