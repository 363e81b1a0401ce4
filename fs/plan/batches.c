/* Global batches: arithmetic on the order. */
#include "fs/plan/batches.h"

#include <errno.h>
#include <string.h>

int batches_init(struct batches *b, const uint32_t *order, uint32_t count, uint32_t skip, uint32_t ranks,
                 uint32_t batch, enum plan_tail tail)
{
    if (skip > count)
        return -ERANGE;
    uint32_t left = count - skip, odd = left % ranks;
    if (tail == TAIL_PAD && odd)
        left += ranks - odd;
    else if (tail == TAIL_DROP)
        left -= odd;
    *b = (struct batches){
        .order = order, .count = count, .skip = skip, .ranks = ranks, .total = left, .size = (uint64_t)ranks * batch};
    b->steps = left / b->size + (left % b->size != 0);
    return 0;
}

uint32_t batches_length(const struct batches *b, uint64_t step)
{
    uint64_t left = b->total - step * b->size;
    return (uint32_t)(left < b->size ? left : b->size);
}

const uint32_t *batches_at(const struct batches *b, uint64_t step, uint32_t *scratch)
{
    uint64_t from = b->skip + step * b->size;
    uint32_t n = batches_length(b, step);
    if (from + n <= b->count)
        return b->order + from;
    uint32_t have = from < b->count ? (uint32_t)(b->count - from) : 0;
    memcpy(scratch, b->order + (have ? from : 0), have * sizeof *scratch);
    for (uint64_t i = have, at = have ? 0 : from - b->count; i < n; i++, at++)
        scratch[i] = b->order[at % b->count];
    return scratch;
}
