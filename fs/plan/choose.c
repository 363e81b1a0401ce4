/* If each group owns the whole dataset, a sample has several owners: choose so that few samples move.
 *
 *   1. Each sample goes to that of its owners whose ranks lack most, one sample after the other. (As with balls that
 *      choose the emptier of two bins, loads are then nearly even.)
 *   2. Samples change to another owner as long as that evens out the loads.
 *   3. When no single change helps, surpluses move between nodes to a place where one does. */
#include "fs/plan/deal-state.h"

#include <stdbool.h>

enum { PASSES = 16 };

/* What the ranks of a node lack; negative: surplus. */
static int64_t node_room(const struct deal *d, uint32_t node)
{
    return (int64_t)d->target[node] - d->count[node];
}

/* The first owner with the most room; the number of nodes if there is none. */
static uint32_t roomiest_owner(const struct deal *d, uint32_t sample)
{
    const struct owners *o = d->owners;
    uint32_t best = o->nodes;
    for (uint32_t g = 0; g < o->groups; g++) {
        uint32_t v = o->of[g][sample];
        if (v < o->nodes && (best == o->nodes || node_room(d, v) > node_room(d, best)))
            best = v;
    }
    return best;
}

/* Change the owner of every sample that gains at least `least` by that. */
static uint32_t change_owners(struct deal *d, const uint32_t *batch, uint32_t n, int64_t least, bool surplus_only)
{
    uint32_t changes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = d->home[i];
        if (from >= d->owners->nodes || (surplus_only && node_room(d, from) >= 0))
            continue;
        uint32_t to = roomiest_owner(d, batch[i]);
        if (to == from || node_room(d, to) - node_room(d, from) < least)
            continue;
        d->count[from]--;
        d->count[to]++;
        d->home[i] = (uint16_t)to;
        changes++;
    }
    return changes;
}

static bool has_surplus(const struct deal *d)
{
    for (uint32_t v = 0; v < d->owners->nodes; v++)
        if (node_room(d, v) < 0)
            return true;
    return false;
}

void choose_owners(struct deal *d, const uint32_t *batch, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (d->uses.first && d->home[i] & STAYS) {
            d->count[d->home[i] & ~STAYS]++;
            continue;
        }
        uint32_t v = roomiest_owner(d, batch[i]);
        d->home[i] = (uint16_t)v;
        d->count[v]++;
    }
    for (int pass = 0; pass < PASSES && has_surplus(d); pass++)
        if (change_owners(d, batch, n, 2, false) == 0 && change_owners(d, batch, n, 1, true) == 0)
            return;
}
