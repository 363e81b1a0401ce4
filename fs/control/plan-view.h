/* What is said of plans: in replies, and in `status` (verb_plan_add_status, in verbs.h). */
#ifndef FS_CONTROL_PLAN_VIEW_H
#define FS_CONTROL_PLAN_VIEW_H

#include "fs/base/json.h"
#include "fs/catalog/samples.h"

struct planned;
struct store;

/* On which nodes ranks run. */
struct plan_ranks {
    const uint32_t *node; /* by rank; NULL: evenly */
    uint32_t count, nodes, me;
};
uint32_t plan_ranks_node(const struct plan_ranks *ranks, uint32_t rank);

void plan_view_add(struct json *json, const struct planned *planned);
/* Of what the ranks on this node read, how much it holds now, even if others own it by the plan's layout. */
void plan_view_add_held(struct json *json, const struct planned *planned, const struct plan_ranks *ranks,
                        const struct samples *list, struct store *store);

#endif
