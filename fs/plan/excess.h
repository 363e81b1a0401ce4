/* How much ranks are above or below their limit, and the cheapest sample of each: a tree over ranks, so that a rank is
 * found, and a change made, in a few steps.
 *
 * The rank that is wanted most often is the lowest one of those with a cheap sample. So each place in the tree knows
 * the least excess not only of all ranks below it but also of some classes of them, by the cost of their cheapest
 * sample. A class contains the class before it. */
#ifndef FS_PLAN_EXCESS_H
#define FS_PLAN_EXCESS_H

#include <stdint.h>

#define EXCESS_NONE UINT32_MAX

enum { EXCESS_CLASSES = 6 };

/* Of a rank. */
struct excess {
    int64_t above;    /* cost above the limit; negative: below it */
    int64_t cheapest; /* sample; INT64_MAX: it has none */
};

/* Of the ranks of a block, or of all ranks below a place in the tree; `least` by class. */
struct excess_place {
    int64_t most, least[EXCESS_CLASSES];
};

struct excesses {
    struct excess *rank;
    uint32_t ranks, blocks;        /* blocks: leaves of the tree, a power of two */
    struct excess_place *place;    /* 1 is the root; below i are 2 · i and 2 · i + 1 */
    int64_t bound[EXCESS_CLASSES]; /* a class has the ranks whose cheapest sample costs less; the last one: all */
    int first;                     /* class that is used */
    uint32_t *heap;                /* of excess_next */
    uint32_t waiting;
};

uint64_t excess_memory(uint32_t most);
int excess_init(struct excesses *excesses, uint32_t most); /* -ENOMEM */
void excess_fini(struct excesses *excesses);
/* n ≤ most ranks, each written to rank[] before excess_done; then excess_change may change some. */
void excess_begin(struct excesses *excesses, uint32_t n);
void excess_done(struct excesses *excesses);
void excess_change(struct excesses *excesses, uint32_t rank, struct excess excess);

/* The rank with the largest excess, of equal ones the lowest. */
uint32_t excess_highest(const struct excesses *excesses);
/* The rank with the least excess, of equal ones the lowest, of those that have a sample cheaper than this.
 * EXCESS_NONE: there is none. */
uint32_t excess_lowest(const struct excesses *excesses, int64_t cheaper);
/* The others of those, one after the other in the order of excesses, then ranks, as long as nothing changes: */
void excess_queue(struct excesses *excesses, int64_t cheaper, uint32_t without);
uint32_t excess_next(struct excesses *excesses);

#endif
