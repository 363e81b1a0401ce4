/* Walks over a plan's samples step by step; and the reply to `reply=paths`: one line per sample, for people. */
#ifndef FS_CONTROL_PLAN_PATHS_H
#define FS_CONTROL_PLAN_PATHS_H

#include "fs/catalog/samples.h"
#include "fs/control/protocol.h"
#include "fs/plan/plan-request.h"

struct plan_listing {
    const struct samples *samples;
    const struct plan_request *wanted;
    const struct plan_shape *shape;
    const uint32_t *lists;
};

/* Calls `visit` for each sample: step by step, and rank by rank within a step. With `rank=` only for that rank. Returns
 * the first result of `visit` that is not 0. */
typedef int (*plan_visit)(void *user, uint64_t step, uint32_t rank, uint32_t sample);
int plan_walk(const struct plan_listing *plan, plan_visit visit, void *user);

/* step TAB rank TAB number TAB path; for a record also TAB offset TAB length. Steps are counted from the end of `skip`.
 * -ENOMEM: see `why`; -EINTR. */
int plan_paths(const struct plan_listing *plan, const struct catalog *c, const struct asker *asker);

#endif
