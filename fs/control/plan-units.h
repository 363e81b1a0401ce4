/* Units: nodes that belong to the same rank, as under tensor parallelism. Plans treat them as one node. */
#ifndef FS_CONTROL_PLAN_UNITS_H
#define FS_CONTROL_PLAN_UNITS_H

#include "fs/control/budget.h"
#include "fs/control/owners.h"

struct plan_units {
    uint32_t *of_node;    /* unit of each node; NULL: each node is a unit */
    struct owners owners; /* as units */
    uint32_t me;          /* this node's unit */
    uint16_t *own;        /* allocated owners.of; NULL: it belongs to the table */
};

/* owners.nodes and of_node must be set. Converts the owners of `samples` samples to units. -ENOMEM: see `why`. */
int plan_units_join(struct plan_units *units, const struct owner_table *table, uint64_t samples, struct charge *charge,
                    struct str *why);
void plan_units_fini(struct plan_units *units);

#endif
