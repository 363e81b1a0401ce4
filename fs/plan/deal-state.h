/* What deal.c and choose.c share. */
#ifndef FS_PLAN_DEAL_STATE_H
#define FS_PLAN_DEAL_STATE_H

#include "fs/plan/balance.h"
#include "fs/plan/placement.h"
#include "fs/plan/uses.h"

#define NO_LEG UINT32_MAX
/* In `home`, beside the node: what was used before, so that others move in its place. */
enum { STAYS = 0x8000 };

struct leg {
    uint32_t left; /* samples that still go this way */
    uint32_t next; /* the transfer after it, or NO_LEG */
    uint16_t to;
};

struct seat {
    uint32_t at, from, to; /* in placement->rank: next, first, behind the last */
};

struct deal {
    const struct placement *placement;
    const struct owners *owners;
    bool positions; /* what is dealt are positions in the batch */
    struct balance balance;
    struct uses uses;    /* `first` NULL: the order is not echoed */
    uint16_t *home;      /* by position; the number of nodes: nobody's */
    uint32_t *count;     /* by node: of the batch, what it owns; at the end nobody's */
    uint32_t *target;    /* by node: what its ranks get */
    struct leg *leg;     /* by node, and nobody's */
    uint32_t *following; /* by transfer: the giver's next */
    struct seat *seat;   /* by node */
    uint32_t **to;       /* by place in placement->rank: where that rank's next sample goes */
};

/* Sets home and count, where a sample has an owner in each of several groups. What stays has its home already. */
void choose_owners(struct deal *d, const uint32_t *batch, uint32_t n);

#endif
