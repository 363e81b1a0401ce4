/* An order cut into global batches: what all ranks together train on in a step.
 *
 *   order:  0 … skip │ batch 0 │ batch 1 │ … │ last, shorter │ filled up (pad) or cut off (drop) until ranks divide it
 *
 * As PyTorch's DistributedSampler does: `pad` repeats the order from its beginning, `drop` leaves the rest out; `short`
 * does neither, so that the last batch has one sample more on some ranks than on others. */
#ifndef FS_PLAN_BATCHES_H
#define FS_PLAN_BATCHES_H

#include <stdint.h>

enum plan_tail { TAIL_PAD, TAIL_DROP, TAIL_SHORT };

struct batches {
    const uint32_t *order; /* borrowed */
    uint32_t count;        /* of its entries */
    uint32_t skip;         /* as many of them are left out at the beginning */
    uint32_t ranks;
    uint32_t total; /* entries that are dealt */
    uint64_t size;  /* of a global batch: ranks times the batch of one */
    uint64_t steps;
};

/* `b->order` and `count` may be set later, count to the same. -ERANGE: skip is past the end. */
int batches_init(struct batches *b, const uint32_t *order, uint32_t count, uint32_t skip, uint32_t ranks,
                 uint32_t batch, enum plan_tail tail);
/* None is longer than that of step 0, which is 0 where there is no step. */
uint32_t batches_length(const struct batches *b, uint64_t step);
/* The batch of a step; `scratch` has room for it and is used where it is filled up. */
const uint32_t *batches_at(const struct batches *b, uint64_t step, uint32_t *scratch);
/* Of n samples, how many a rank gets, and at which one it begins: equal, or one more for the first ranks. */
static inline uint32_t batches_share(uint32_t n, uint32_t ranks, uint32_t rank)
{
    return n / ranks + (rank < n % ranks);
}
static inline uint32_t batches_place(uint32_t n, uint32_t ranks, uint32_t rank)
{
    return n / ranks * rank + (rank < n % ranks ? rank : n % ranks);
}

#endif
