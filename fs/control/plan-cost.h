/* The costs of a plan's samples: their bytes, or an uploaded list of numbers. */
#ifndef FS_CONTROL_PLAN_COST_H
#define FS_CONTROL_PLAN_COST_H

#include "fs/catalog/samples.h"
#include "fs/control/protocol.h"
#include "fs/plan/plan-request.h"

struct control;

struct plan_cost {
    struct digest digest; /* of the costs; zero: there are none */
    struct samples *list; /* the numbers; NULL: a sample costs its bytes */
};

/* -ENOENT: there is no such list; -EINVAL: it is for other samples; see `why`. */
int plan_cost_find(struct control *control, const struct samples *list, const struct plan_request *wanted,
                   const struct asker *asker, struct plan_cost *cost);
void plan_cost_fini(struct plan_cost *cost);
uint64_t plan_cost_of(const struct plan_cost *cost, const struct samples *list, uint32_t sample);

#endif
