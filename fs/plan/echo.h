/* Data echoing (Choi et al.): a fresh sample, or batch, is used several times; uses are shuffled in a buffer.
 *
 * The factor is in millionths, so that 1.5 is exact. Each example or batch is used as often as the integer part says,
 * and once again if the random number at its place in the order is below the fraction. So a resumed plan has the same
 * repeats. */
#ifndef FS_PLAN_ECHO_H
#define FS_PLAN_ECHO_H

#include "fs/plan/batches.h"
#include "fs/plan/stop.h"

/* In millionths; the buffer in samples. */
enum { ECHO_ONE = 1000000, ECHO_MOST = 1000 * ECHO_ONE, ECHO_BUFFER = 100000 };

struct echo {
    uint32_t factor;
    uint32_t buffer; /* entries from which one is taken at random; 0 or 1: not shuffled */
    uint64_t seed;
};

/* An order with repeated examples. The caller frees `*out`. -E2BIG: too many; -ENOMEM, -EINTR. */
int echo_examples(const struct echo *echo, const uint32_t *order, uint32_t n, const struct plan_stop *stop,
                  uint32_t **out, uint32_t *count);

/* The batches by step, each as often as it is used. Whole batches are shuffled in a buffer of `buffer` samples; the
 * uses of a shorter last batch follow, so that all lists are cut alike. The first `skip` samples of this sequence are
 * left out. */
/* flag in the batch's number: it was used before */
enum { ECHO_AGAIN = 1u << 31, ECHO_BATCHES_MOST = ECHO_AGAIN - 1 };
struct echo_steps {
    uint32_t *batch; /* freed by the caller */
    uint64_t count;
    uint64_t short_uses; /* of the shorter batch, at the end */
    uint64_t begun;      /* samples of the first step that are left out: only where it is of the shorter batch */
};
/* -ERANGE: `skip` is beyond the end; -EDOM: it is within a whole batch; -E2BIG, -ENOMEM, -EINTR. */
int echo_batches(const struct echo *echo, const struct batches *batches, uint64_t skip, const struct plan_stop *stop,
                 struct echo_steps *steps);

#endif
