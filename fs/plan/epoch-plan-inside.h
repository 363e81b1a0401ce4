/* What epoch-plan.c and epoch-run.c share. */
#ifndef FS_PLAN_EPOCH_PLAN_INSIDE_H
#define FS_PLAN_EPOCH_PLAN_INSIDE_H

#include "fs/plan/epoch-plan.h"
#include "fs/plan/swaps.h"

struct plan {
    struct plan_input input;
    uint32_t *echoed; /* the order after echoing of examples; NULL: nothing is echoed */
    uint32_t *local;  /* the order of mode=local where it is allocated here; or NULL */
    struct batches batches;
    struct placement placement;
    struct deal *deal;
    struct swaps *swaps;    /* NULL: ranks are not made equal in cost */
    struct echo_steps echo; /* of batches; `batch` NULL: each is used once */
    uint64_t lead;          /* steps that are dealt before those that are wanted */
    uint64_t steps;         /* those that are wanted, echoes included */
    uint64_t until;         /* where dealing ends: behind the last window of which a step is wanted */
};

#endif
