/* Shared by deal.c and choose.c. */
#ifndef FS_PLAN_DEAL_STATE_H
#define FS_PLAN_DEAL_STATE_H

#include "fs/plan/balance.h"
#include "fs/plan/placement.h"
#include "fs/plan/uses.h"

#define NO_LEG UINT32_MAX
/* Flag in `home`: the sample was used before, so that others move instead of it. */
enum { STAYS = 0x8000 };

struct leg {
    uint32_t left; /* samples that still go this way */
    uint32_t next; /* the next transfer, or NO_LEG */
    uint16_t to;
};

struct seat {
    uint32_t at, from, to; /* indices in placement->rank: next, first, after the last */
};

struct deal {
    const struct placement *placement;
    const struct owners *owners;
    bool positions; /* deals positions in the batch instead of samples */
    struct balance balance;
    struct uses uses;    /* `first` NULL: the order is not echoed */
    uint16_t *home;      /* by position; the number of nodes: no owner */
    uint32_t *count;     /* per node: samples of the batch that it owns; last element: without an owner */
    uint32_t *target;    /* per node: what its ranks get */
    struct leg *leg;     /* per node, and for samples without an owner */
    uint32_t *following; /* by transfer: the giver's next one */
    struct seat *seat;   /* per node */
    uint32_t **to;       /* by index in placement->rank: where this rank's next sample goes */
};

/* Sets home and count if samples have several owners. The home of samples that stay is set already. */
void choose_owners(struct deal *d, const uint32_t *batch, uint32_t n);

#endif
