/* Shared by epoch-plan.c and epoch-run.c. */
#ifndef FS_PLAN_EPOCH_PLAN_INSIDE_H
#define FS_PLAN_EPOCH_PLAN_INSIDE_H

#include "fs/plan/epoch-plan.h"
#include "fs/plan/swaps.h"

struct plan {
    struct plan_input input;
    uint32_t *echoed; /* the order with repeated examples; NULL: no echo */
    uint32_t *local;  /* the order of mode=local if it is allocated here; or NULL */
    struct batches batches;
    struct placement placement;
    struct deal *deal;
    struct swaps *swaps;    /* NULL: ranks are not balanced by cost */
    struct echo_steps echo; /* of batches; `batch` NULL: each is used once */
    uint64_t lead;          /* number of steps that are dealt before the wanted ones */
    uint64_t steps;         /* number of wanted steps, echoes included */
    uint32_t crop;          /* entries of each rank in the first step that are left out: they are before `skip` */
    uint64_t until;         /* the end of dealing: after the last window with a wanted step */
};

#endif
