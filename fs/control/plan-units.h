/* Nodes of which a rank has several, as under tensor parallelism: a plan is made for them as for one node. */
#ifndef FS_CONTROL_PLAN_UNITS_H
#define FS_CONTROL_PLAN_UNITS_H

#include "fs/control/budget.h"
#include "fs/control/owners.h"

struct plan_units {
    uint32_t *of_node;    /* by node; NULL: each node is a unit */
    struct owners owners; /* in units */
    uint32_t me;          /* the unit of this node */
    uint16_t *own;        /* frees owners.of; NULL: they are the table's */
};

/* owners.nodes and of_node are set: the owners of `samples` samples become units. -ENOMEM: `why` tells. */
int plan_units_join(struct plan_units *units, const struct owner_table *table, uint64_t samples, struct charge *charge,
                    struct str *why);
void plan_units_fini(struct plan_units *units);

#endif
