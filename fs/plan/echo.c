/* Echoing of examples. */
#include "fs/plan/echo.h"

#include "fs/base/cleanup.h"
#include "fs/plan/order.h"

#include <errno.h>

static int count_echoes(uint32_t n, uint32_t factor, uint64_t seed, const struct plan_stop *stop, uint32_t *count)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        total += echo_repeats(factor, seed, RANDOM_EXAMPLES, i);
    }
    if (total > PLAN_ENTRIES_MOST)
        return -E2BIG;
    *count = (uint32_t)total;
    return 0;
}

/* Of the buffer's examples one is taken at random, and the next of the sequence comes in for it. The buffer is the next
 * part of the sequence itself: what is taken changes places with what stands where it goes. */
static int stir_buffer(uint32_t *order, uint32_t n, uint32_t buffer, uint64_t seed, const struct plan_stop *stop)
{
    struct mt19937 mt;

    mt_seed(&mt, random_at(seed, RANDOM_BUFFER, 0));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t held = n - i < buffer ? n - i : buffer, taken = i + mt_next(&mt) % held, value = order[i];
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        order[i] = order[taken];
        order[taken] = value;
    }
    return 0;
}

int echo_examples(const uint32_t *order, uint32_t n, uint32_t factor, uint32_t buffer, uint64_t seed,
                  const struct plan_stop *stop, uint32_t **out, uint32_t *count)
{
    CLEANUP_FREE uint32_t *made = NULL;
    uint32_t total = 0, at = 0;
    int error = count_echoes(n, factor, seed, stop, &total);

    if (error)
        return error;
    made = malloc((total + 1ul) * sizeof *made);
    if (!made)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        for (uint32_t left = echo_repeats(factor, seed, RANDOM_EXAMPLES, i); left > 0; left--)
            made[at++] = order[i];
    }
    error = buffer > 1 ? stir_buffer(made, total, buffer, seed, stop) : 0;
    if (error)
        return error;
    *out = steal_pointer(made);
    *count = total;
    return 0;
}
