/* The owners of a list's samples, by a layout: the input of plans.
 *
 * A table is immutable. The last one is cached, since the requests of an epoch, and of the next ones, use the same list
 * and layout. */
#ifndef FS_CONTROL_OWNERS_H
#define FS_CONTROL_OWNERS_H

#include "fs/catalog/samples.h"
#include "fs/control/kept.h"
#include "fs/control/plan-memory.h"
#include "fs/control/protocol.h"
#include "fs/plan/placement.h"
#include "fs/plan/plan-request.h"
#include "fs/world/layout.h"

struct owner_table {
    struct kept_item item; /* first; its key is computed from layout and list */
    struct digest layout;  /* zeros: there never was a world */
    struct owners owners;
    uint32_t me;               /* this node's number in that layout; `nodes`: it is not in it */
    char (*host)[NODE_HOST];   /* per node */
    struct plan_memory memory; /* of owners.of */
    uint64_t bytes;            /* of all samples */
};

void owners_init(struct kept *owners);
/* The table for a list and the layout `wanted` (NULL: the current one, or the last world's). A reference. -ESTALE: that
 * layout is neither the current one nor kept; -EINTR, -ENOMEM; see `why`. */
int owners_find(struct control *control, struct samples *list, const struct digest *wanted, const struct asker *asker,
                struct owner_table **table);
void owners_put(struct control *control, struct owner_table *table);
/* The layout that a plan would use: the one that it names, else the current one. */
struct digest owners_layout(struct control *control, const struct plan_request *wanted);

#endif
