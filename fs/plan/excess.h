/* How much ranks are above or below their limit, and which of them have samples that can be swapped: a tree over ranks,
 * so that a rank is found, and a change made, in a few steps. */
#ifndef FS_PLAN_EXCESS_H
#define FS_PLAN_EXCESS_H

#include <stdint.h>

#define EXCESS_NONE UINT32_MAX

/* Of a rank, or of all ranks below a place in the tree. */
struct excess {
    int64_t most, least; /* cost above the limit; negative: below it. Of a rank both are the same */
    int64_t cheapest;    /* sample */
    int64_t rest;        /* the least cost above the limit without the most expensive sample */
};

struct excesses {
    uint32_t leaves;     /* a power of two */
    struct excess *node; /* 1 is the root; below i are 2 · i and 2 · i + 1 */
};

int excess_init(struct excesses *excesses, uint32_t most); /* -ENOMEM */
void excess_fini(struct excesses *excesses);
/* n ≤ most ranks, each set by excess_set before excess_done; then excess_change may change some. */
void excess_begin(struct excesses *excesses, uint32_t n);
void excess_set(struct excesses *excesses, uint32_t rank, const struct excess *excess);
void excess_done(struct excesses *excesses);
void excess_change(struct excesses *excesses, uint32_t rank, const struct excess *excess);

static inline const struct excess *excess_of(const struct excesses *excesses, uint32_t rank)
{
    return &excesses->node[excesses->leaves + rank];
}
/* The rank with the largest excess, of equal ones the lowest. */
uint32_t excess_highest(const struct excesses *excesses);

/* What a rank must have to be of use: a sample cheaper than `cost`, or less than `rest` without its most expensive one.
 * It comes behind another one in the order of excesses, then ranks. */
struct excess_wanted {
    int64_t cost, rest;
    int64_t after; /* excess and rank of that other one; EXCESS_NONE: any rank with this excess is behind */
    uint32_t after_rank;
};
/* The first such rank. EXCESS_NONE: there is none. */
uint32_t excess_lowest(const struct excesses *excesses, const struct excess_wanted *wanted);

#endif
