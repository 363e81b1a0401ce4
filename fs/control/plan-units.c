/* Maps owners to units. */
#include "fs/control/plan-units.h"

#include <stdlib.h>

int plan_units_join(struct plan_units *u, const struct owner_table *t, uint64_t samples, struct charge *charge,
                    struct str *why)
{
    uint32_t nodes = t->owners.nodes;
    if (u->owners.nodes == nodes)
        return 0;
    int error = charge_add(charge, samples * t->owners.groups * sizeof *u->own, why);
    if (error)
        return error;
    u->own = malloc((samples * t->owners.groups + 1) * sizeof *u->own);
    if (!u->own)
        return str_no_memory(why);
    for (uint32_t g = 0; g < t->owners.groups; g++) {
        uint16_t *of = u->own + g * samples;
        for (uint64_t i = 0; i < samples; i++) {
            uint32_t v = t->owners.of[g][i];
            of[i] = v < nodes ? (uint16_t)u->of_node[v] : UINT16_MAX;
        }
        u->owners.of[g] = of;
    }
    u->me = t->me < nodes ? u->of_node[t->me] : u->owners.nodes;
    return 0;
}

void plan_units_fini(struct plan_units *u)
{
    free(u->of_node);
    free(u->own);
    *u = (struct plan_units){0};
}
