/* What swaps.c and swap-pair.c share. */
#ifndef FS_PLAN_SWAP_STATE_H
#define FS_PLAN_SWAP_STATE_H

#include "fs/plan/batches.h"
#include "fs/plan/excess.h"
#include "fs/plan/swaps.h"

enum { CHANGES = 3 /* a sample that moves: one less away from its owners, as many, one more */ };

struct swap_item {
    uint64_t cost, bytes;
    uint32_t sample, position; /* position: in the window */
    uint32_t slot;             /* where in the lists it goes */
    uint16_t owner;            /* in the first group */
};

struct swap_candidate {
    int64_t cost, weight; /* weight: what moving it adds to the bytes away from their owners */
    uint32_t position, item;
};

struct swap_lane {
    struct swap_candidate *candidate;
    uint32_t count;
};

struct swap_choice {
    int64_t distance, weight;
    uint32_t high, low; /* positions */
    uint32_t step, high_item, low_item;
};

struct swap_rank {
    uint64_t cost, samples; /* of the window */
    uint64_t least, most;   /* cost of a sample */
    int64_t limit;
    bool sorted;
};

struct swaps {
    struct swap_terms terms;
    uint32_t steps;
    uint32_t *length, *base; /* by step: its samples, and where they begin */
    struct swap_item *item, *spare;
    uint32_t *list;  /* by slot: the sample */
    uint16_t *owner; /* the same: its owner in the first group */
    struct swap_rank *rank;
    const uint32_t *member;   /* the set that swaps: ranks, ascending; NULL: all */
    struct excesses excesses; /* of the set */
    struct swap_lane high[CHANGES], low[CHANGES];
};

/* The samples of a rank in a step of the window. */
static inline struct swap_item *swaps_segment(const struct swaps *s, uint32_t step, uint32_t rank, uint32_t *n)
{
    uint32_t ranks = s->terms.placement->ranks;
    *n = batches_share(s->length[step], ranks, rank);
    return s->item + s->base[step] + batches_place(s->length[step], ranks, rank);
}

/* Is it owned, but not by this node? */
bool swaps_away(const struct swaps *s, const struct swap_item *item, uint32_t node);
/* The best pair of two ranks whose costs differ by `difference`. `most`: the distance from half the difference that is
 * allowed. With `owned` the pair that moves fewest samples away from their owners, else only distance and position
 * count. False: there is none. */
bool swaps_find_pair(struct swaps *s, uint32_t high, uint32_t low, int64_t difference, int64_t most, bool owned,
                     struct swap_choice *chosen);

#endif
