/* Shared by swaps.c and swap-pair.c. */
#ifndef FS_PLAN_SWAPS_INSIDE_H
#define FS_PLAN_SWAPS_INSIDE_H

#include "fs/plan/excess.h"
#include "fs/plan/swaps.h"

enum { CHANGES = 3 /* of the number of samples away from their owners: one less, equal, one more */ };

#define NOT_KNOWN UINT64_MAX

struct swap_item {
    uint64_t cost;
    uint32_t position; /* in the window */
    uint32_t slot;     /* its place in the lists */
};

/* A step of the window: where its samples begin, and how many each rank has; the first `odd` ranks have one more. */
struct swap_step {
    uint32_t length, base, share, odd;
};

struct swap_candidate {
    int64_t cost;
    uint32_t position, item;
};

struct swap_lane {
    struct swap_candidate *candidate;
    uint32_t count;
};

struct swap_choice {
    int64_t distance;
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
    struct swap_step *step;
    struct swap_item *item, *spare;
    uint32_t *list;  /* by slot: the sample */
    uint16_t *owner; /* by slot: its owner in the first group */
    uint64_t *bytes; /* by slot: its bytes, once needed; else NOT_KNOWN */
    uint64_t *cost;  /* by place in a batch */
    struct swap_rank *rank;
    const uint32_t *member;   /* the ranks that swap, ascending; NULL: all */
    bool even;                /* all of them have equally many samples */
    int64_t fewest;           /* smallest number of samples of a rank of the set that has any */
    int64_t highest_limit;    /* of the set */
    struct excesses excesses; /* of the set */
    struct swap_lane high[CHANGES], low[CHANGES];
};

/* The samples of a rank in a step of the window. */
static inline struct swap_item *swaps_segment(const struct swaps *s, uint32_t step, uint32_t rank, uint32_t *n)
{
    const struct swap_step *t = &s->step[step];
    *n = t->share + (rank < t->odd);
    return s->item + t->base + (size_t)t->share * rank + (rank < t->odd ? rank : t->odd);
}

static inline bool swap_item_is_below(const struct swap_item *a, const struct swap_item *b)
{
    return (a->cost < b->cost) | ((a->cost == b->cost) & (a->position < b->position));
}
/* By cost, then position. `spare`: memory for n. */
void swap_items_sort(struct swap_item *item, uint32_t n, struct swap_item *spare);

/* Change in the number of samples away from their owners, if this one goes from node `own` to node `other`: -1, 0
 * or 1. */
int swaps_change(const struct swaps *s, const struct swap_item *item, uint32_t own, uint32_t other);
/* The same in bytes. */
int64_t swaps_weight(struct swaps *s, const struct swap_item *item, uint32_t own, uint32_t other);

/* A search for a pair of samples of two ranks. */
struct pair_search {
    struct swaps *swaps;
    uint32_t high, low;  /* the ranks */
    uint32_t own, other; /* their nodes; equal: owners do not matter */
    int64_t difference;  /* of the costs of the ranks */
    int64_t most;        /* maximum distance from half the difference */
    uint32_t step;       /* private */
};
/* The best pair moves fewest samples away from their owners; then distance and position count. False: there is none. */
bool swaps_find_pair(struct pair_search *search, struct swap_choice *chosen);

#endif
