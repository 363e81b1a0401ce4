/* Repeats examples or batches: repeats are adjacent first, then the buffer shuffles them. */
#include "fs/plan/echo.h"

#include "fs/base/cleanup.h"
#include "fs/plan/order.h"
#include "fs/plan/random.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static uint32_t echo_repeats(const struct echo *echo, enum random_use use, uint64_t position)
{
    return echo->factor / ECHO_ONE + (random_at(echo->seed, use, position) % ECHO_ONE < echo->factor % ECHO_ONE);
}

/* Number of echoes for entries that are `apart` entries of the order from each other. */
static int count_echoes(const struct echo *echo, enum random_use use, uint64_t n, uint64_t apart,
                        const struct plan_stop *stop, uint64_t *total)
{
    *total = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        *total += echo_repeats(echo, use, i * apart);
    }
    return 0;
}

/* Take a random entry of the buffer, and replace it by the next of the sequence. The buffer is the next part of the
 * sequence itself: the taken entry changes places with the one where it goes. */
static int stir_buffer(const struct echo *echo, uint32_t *entry, uint32_t n, const struct plan_stop *stop)
{
    struct mt19937 mt;
    if (echo->buffer < 2)
        return 0;
    mt_seed(&mt, random_at(echo->seed, RANDOM_BUFFER, 0));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t held = n - i < echo->buffer ? n - i : echo->buffer, taken = i + mt_next(&mt) % held, value = entry[i];
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        entry[i] = entry[taken];
        entry[taken] = value;
    }
    return 0;
}

int echo_examples(const struct echo *echo, const uint32_t *order, uint32_t n, const struct plan_stop *stop,
                  uint32_t **out, uint32_t *count)
{
    CLEANUP_FREE uint32_t *made = NULL;
    uint64_t total = 0;
    uint32_t at = 0;
    int error = count_echoes(echo, RANDOM_EXAMPLES, n, 1, stop, &total);
    if (!error && total > PLAN_ENTRIES_MOST)
        error = -E2BIG;
    if (error)
        return error;
    made = malloc((total + 1) * sizeof *made);
    if (!made)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        for (uint32_t left = echo_repeats(echo, RANDOM_EXAMPLES, i); left > 0; left--)
            made[at++] = order[i];
    }
    error = stir_buffer(echo, made, at, stop);
    if (error)
        return error;
    *out = steal_pointer(made);
    *count = at;
    return 0;
}

/* Mark all but the first use of each batch. */
static int mark_again(uint32_t *batch, uint64_t n, uint64_t batches)
{
    CLEANUP_FREE bool *used = calloc(batches + 1, sizeof *used);
    if (!used)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        bool *of = &used[batch[i]];
        batch[i] |= *of ? ECHO_AGAIN : 0;
        *of = true;
    }
    return 0;
}

/* The step with the sample that comes after `skip` samples: `whole` steps of a size, then `last` shorter ones. */
static int find_step(const struct batches *b, uint64_t skip, uint64_t whole, uint64_t last, struct echo_steps *steps,
                     uint64_t *step)
{
    uint64_t shorter = last ? b->total % b->size : b->size;
    bool beyond = skip > whole * b->size;
    uint64_t in = beyond ? skip - whole * b->size : skip, each = beyond ? shorter : b->size;
    *step = in / each + (beyond ? whole : 0);
    steps->begun = in % each;
    if (*step > whole + last || (*step == whole + last && steps->begun))
        return -ERANGE;
    return steps->begun && *step < whole ? -EDOM : 0;
}

int echo_batches(const struct echo *echo, const struct batches *b, uint64_t skip, const struct plan_stop *stop,
                 struct echo_steps *steps)
{
    bool shorter = b->total % b->size != 0;
    uint64_t whole = b->steps - shorter, total = 0, from;
    const struct echo of_batches = {echo->factor, (uint32_t)(echo->buffer / b->size), echo->seed};
    uint32_t last = shorter ? echo_repeats(echo, RANDOM_BATCHES, whole * b->size) : 0, at = 0;
    CLEANUP_FREE uint32_t *made = NULL;
    int error = count_echoes(echo, RANDOM_BATCHES, whole, b->size, stop, &total);
    if (error)
        return error;
    if (total + last > ECHO_BATCHES_MOST)
        return -E2BIG;
    error = find_step(b, skip, total, last, steps, &from);
    if (error)
        return error;
    made = malloc((total + last + 1) * sizeof *made);
    if (!made)
        return -ENOMEM;
    for (uint32_t i = 0; i < whole; i++)
        for (uint32_t left = echo_repeats(echo, RANDOM_BATCHES, i * b->size); left > 0; left--)
            made[at++] = i;
    error = stir_buffer(&of_batches, made, at, stop);
    if (error)
        return error;
    while (at < total + last)
        made[at++] = (uint32_t)whole;
    steps->count = at - from;
    steps->short_uses = steps->count < last ? steps->count : last;
    memmove(made, made + from, steps->count * sizeof *made);
    error = mark_again(made, steps->count, b->steps);
    if (!error)
        steps->batch = steal_pointer(made);
    return error;
}
