/* Global batches: arithmetic on the order. */
#include "fs/plan/batches.h"

#include <errno.h>
#include <string.h>

int batches_cut(struct batches *b, uint32_t batch, enum plan_tail tail)
{
    if (b->skip > b->count)
        return -ERANGE;
    uint32_t left = b->count - b->skip, odd = left % b->ranks;
    if (tail == TAIL_PAD && odd)
        left += b->ranks - odd;
    else if (tail == TAIL_DROP)
        left -= odd;
    b->total = left;
    b->size = (uint64_t)b->ranks * batch;
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
