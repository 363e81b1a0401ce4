/* Orders that are computed: natural, and PyTorch's permutation. */
#include "fs/plan/order.h"

#include "fs/plan/random.h"

#include <errno.h>

int order_natural(uint32_t *order, uint32_t n, const struct plan_stop *stop)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        order[i] = i;
    }
    return 0;
}

/* Swaps as many places as one refill of the generator serves. All targets are known before the first swap, so their
 * memory is prefetched: in a long order, nearly every access is a cache miss. */
static void swap_some(uint32_t *order, uint32_t from, uint32_t to, uint32_t n, struct mt19937 *mt)
{
    uint32_t with[MT_WORDS];
    mt_refill(mt);
    for (uint32_t i = from; i < to; i++) {
        with[i - from] = i + mt->drawn[i - from] % (n - i);
        __builtin_prefetch(order + with[i - from], 1);
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t other = with[i - from], value = order[i];
        order[i] = order[other];
        order[other] = value;
    }
}

int order_seeded(uint32_t *order, uint32_t n, uint64_t seed, const struct plan_stop *stop)
{
    enum { TURN = PLAN_SLICE / MT_WORDS * MT_WORDS };
    struct mt19937 mt;
    int error = order_natural(order, n, stop);
    if (error)
        return error;
    mt_seed(&mt, seed);
    for (uint32_t i = 0, to; n > 0 && i < n - 1; i = to) {
        if (i % TURN == 0 && plan_stopped(stop))
            return -EINTR;
        to = n - 1 - i < MT_WORDS ? n - 1 : i + MT_WORDS;
        swap_some(order, i, to, n, &mt);
    }
    return 0;
}
