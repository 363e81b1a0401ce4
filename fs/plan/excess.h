/* How much ranks are above or below their limit, and the cheapest sample of each: a tree over ranks, so that a rank is
 * found, and a change made, in a few steps.
 *
 * The most frequent query is for the lowest rank among those with a cheap sample. So each place in the tree has the
 * least excess of all ranks below it, and also of some classes of them, by the cost of their cheapest sample. Each
 * class contains the previous one. */
#ifndef FS_PLAN_EXCESS_H
#define FS_PLAN_EXCESS_H

#include <stdint.h>

#define EXCESS_NONE UINT32_MAX

enum { EXCESS_CLASSES = 6 };

/* For a rank. */
struct excess {
    int64_t above;    /* cost above the limit; negative: below it */
    int64_t cheapest; /* cost of its cheapest sample; INT64_MAX: it has none */
};

/* For the ranks of a block, or below a place in the tree; `least` per class. */
struct excess_place {
    int64_t most, least[EXCESS_CLASSES];
};

struct excesses {
    struct excess *rank;
    uint32_t ranks, blocks;     /* blocks: leaves of the tree, a power of two */
    struct excess_place *place; /* 1 is the root; i has the children 2 · i and 2 · i + 1 */
    /* a class has the ranks whose cheapest sample costs less than this; the last class has all ranks */
    int64_t bound[EXCESS_CLASSES];
    int first;      /* first class in use */
    uint32_t *heap; /* for excess_next */
    uint32_t waiting;
};

uint64_t excess_memory(uint32_t most);
int excess_init(struct excesses *excesses, uint32_t most); /* -ENOMEM */
void excess_fini(struct excesses *excesses);
/* Write n ≤ most ranks to rank[], then call excess_done; afterwards, excess_change changes single ranks. */
void excess_begin(struct excesses *excesses, uint32_t n);
void excess_done(struct excesses *excesses);
void excess_change(struct excesses *excesses, uint32_t rank, struct excess excess);

/* The rank with the largest excess; of equal ones the lowest. */
uint32_t excess_highest(const struct excesses *excesses);
/* The rank with the least excess, of equal ones the lowest, among those with a sample cheaper than this. EXCESS_NONE:
 * there is none. */
uint32_t excess_lowest(const struct excesses *excesses, int64_t cheaper);
/* Iterate over the other ones of these, by excess, then rank, as long as nothing changes: */
void excess_queue(struct excesses *excesses, int64_t cheaper, uint32_t without);
uint32_t excess_next(struct excesses *excesses);

#endif
