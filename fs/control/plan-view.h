/* Descriptions of plans, in replies and in `status` (verb_plan_add_status, in verbs.h). */
#ifndef FS_CONTROL_PLAN_VIEW_H
#define FS_CONTROL_PLAN_VIEW_H

#include "fs/base/json.h"
#include "fs/catalog/samples.h"
#include "fs/plan/plan-request.h"

struct control;

struct planned;
struct store;

/* The node of each rank. */
struct plan_ranks {
    const uint32_t *node; /* per rank; NULL: evenly distributed */
    uint32_t count, nodes, me;
};
uint32_t plan_ranks_node(const struct plan_ranks *ranks, uint32_t rank);

void plan_view_add(struct json *json, const struct planned *planned);
/* How much of what this node's ranks read is cached here now, even if the plan's layout gives it to other owners. */
void plan_view_add_held(struct json *json, const struct planned *planned, const struct plan_ranks *ranks,
                        const struct samples *list, struct store *store);

/* Which nodes lack the lists of the request, as far as this node knows. */
void plan_view_add_lacking(struct json *json, struct control *control, const struct plan_request *request);

#endif
