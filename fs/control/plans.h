/* Plans, made once for all ranks of a node that request them.
 *
 * A plan's key is the hash of all its inputs. A few plans are cached, for the current and the next epoch. kept.h
 * describes when a plan is made, and when it is removed. */
#ifndef FS_CONTROL_PLANS_H
#define FS_CONTROL_PLANS_H

#include "fs/control/kept.h"
#include "fs/control/plan-memory.h"
#include "fs/control/protocol.h"
#include "fs/plan/epoch-plan.h"

enum { PLANS_KEPT = 4 };

struct planned {
    struct kept_item item; /* first; its key is the hash */
    struct digest layout;
    struct digest terms; /* hash of the inputs but order and owners */
    uint64_t epoch;
    uint32_t batch;
    enum plan_mode mode;
    bool costed; /* ranks have equal cost */
    struct plan_shape shape;
    struct plan_summary summary;
    struct plan_memory memory;
    uint32_t *lists; /* in it: the lists of all ranks */
};

struct plans {
    struct kept kept; /* bytes: of lists, except those in files */
    /* guarded by kept.lock: */
    uint64_t made, misplaced;
    struct plan_summary last; /* of the plan that was made last */
};

struct plans *plans_create(uint64_t most); /* NULL: no memory */
void plans_destroy(struct plans *plans);

/* 0 and `*planned`, a reference: it is READY. 1: the caller must make the plan, and call plans_made or plans_failed.
 * -EINTR, -ENOMEM. */
int plans_get(struct plans *plans, const struct digest *key, const struct asker *asker, struct planned **planned);
/* A reference to the READY plan with these terms, and this digest in its summary; NULL: none is cached. */
struct planned *plans_find(struct plans *plans, const struct digest *digest, const struct digest *terms);
void plans_made(struct plans *plans, struct planned *planned); /* the caller keeps its reference */
void plans_failed(struct plans *plans, struct planned *planned);
void plans_put(struct plans *plans, struct planned *planned);

#endif
