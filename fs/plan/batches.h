/* Cuts an order into global batches: what all ranks together train on in a step.
 *
 *   order:  0 … skip │ batch 0 │ batch 1 │ … │ last, shorter │ padded or cut (drop) until divisible by ranks
 *
 * Like PyTorch's DistributedSampler: `pad` repeats the order from its beginning, `drop` leaves the rest out. `short`
 * does neither, so that in the last batch some ranks have one sample more than others. */
#ifndef FS_PLAN_BATCHES_H
#define FS_PLAN_BATCHES_H

#include <stdint.h>

enum plan_tail { TAIL_PAD, TAIL_DROP, TAIL_SHORT };

struct batches {
    const uint32_t *order; /* borrowed */
    uint32_t count;        /* number of entries */
    uint32_t skip;         /* entries that are left out at the beginning */
    uint32_t ranks;
    uint32_t total; /* number of entries that are dealt */
    uint64_t size;  /* of a global batch: ranks times the batch of one rank */
    uint64_t steps;
};

/* Computes the last three fields from the first four and the batch of one rank. `order` may be set later, also `count`
 * if it stays the same. -ERANGE: `skip` is beyond the end. */
int batches_cut(struct batches *b, uint32_t batch, enum plan_tail tail);
/* Length of a step's batch. Step 0 has the longest; 0 if there is no step. */
uint32_t batches_length(const struct batches *b, uint64_t step);
/* The batch of a step. `scratch` must have room for it; it is used for a padded batch. */
const uint32_t *batches_at(const struct batches *b, uint64_t step, uint32_t *scratch);
/* How many of n samples a rank gets, and from which one on: equal parts, or one more for the first ranks. */
static inline uint32_t batches_share(uint32_t n, uint32_t ranks, uint32_t rank)
{
    return n / ranks + (rank < n % ranks);
}
static inline uint32_t batches_place(uint32_t n, uint32_t ranks, uint32_t rank)
{
    return n / ranks * rank + (rank < n % ranks ? rank : n % ranks);
}

#endif
