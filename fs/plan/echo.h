/* Data echoing (Choi et al.): a fresh sample, or batch, is used several times.
 *
 * The factor is in millionths, so that 1.5 is exact. Each example, or batch, appears as often as the factor's whole
 * part, and once more where the draw at its place of the order is below the fraction; so a plan that resumes draws the
 * same. */
#ifndef FS_PLAN_ECHO_H
#define FS_PLAN_ECHO_H

#include "fs/plan/random.h"
#include "fs/plan/stop.h"

enum { ECHO_ONE = 1000000, ECHO_MOST = 1000 * ECHO_ONE };

static inline uint32_t echo_repeats(uint32_t factor, uint64_t seed, enum random_use use, uint64_t position)
{
    return factor / ECHO_ONE + (random_at(seed, use, position) % ECHO_ONE < factor % ECHO_ONE);
}

/* An order with its examples repeated, then taken at random from a buffer of so many (0: as they are). `*out` is the
 * caller's to free. -E2BIG: too many; -ENOMEM, -EINTR. */
int echo_examples(const uint32_t *order, uint32_t n, uint32_t factor, uint32_t buffer, uint64_t seed,
                  const struct plan_stop *stop, uint32_t **out, uint32_t *count);

#endif
