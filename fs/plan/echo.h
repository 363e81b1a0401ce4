/* Data echoing (Choi et al.): a fresh sample, or batch, is used several times; what is used is shuffled in a buffer.
 *
 * The factor is in millionths, so that 1.5 is exact. Each example, or batch, appears as often as the factor's whole
 * part, and again where the draw at its place of the order is below the fraction; so a plan that resumes draws the
 * same. */
#ifndef FS_PLAN_ECHO_H
#define FS_PLAN_ECHO_H

#include "fs/plan/batches.h"
#include "fs/plan/stop.h"

/* In millionths; the buffer in samples. */
enum { ECHO_ONE = 1000000, ECHO_MOST = 1000 * ECHO_ONE, ECHO_BUFFER = 100000 };

struct echo {
    uint32_t factor;
    uint32_t buffer; /* entries that one is taken of at random; 0 or 1: they stay as they are */
    uint64_t seed;
};

/* An order with its examples repeated. `*out` is the caller's to free. -E2BIG: too many; -ENOMEM, -EINTR. */
int echo_examples(const struct echo *echo, const uint32_t *order, uint32_t n, const struct plan_stop *stop,
                  uint32_t **out, uint32_t *count);

/* The batches by step, each as often as it is used: whole ones shuffled in a buffer of as many as `buffer` samples
 * make, then the uses of a shorter last one, so that all lists are cut alike. Of them the first `skip` are left out.
 * `short_uses`: steps at the end whose batch is the last one and shorter. */
enum { ECHO_AGAIN = 1u << 31, ECHO_BATCHES_MOST = ECHO_AGAIN - 1 }; /* beside the batch's number: it was used before */
struct echo_steps {
    uint32_t *batch; /* the caller's to free */
    uint64_t count, short_uses;
};
/* -ERANGE: there are fewer steps than are to be skipped; -E2BIG, -ENOMEM, -EINTR. */
int echo_batches(const struct echo *echo, const struct batches *batches, uint64_t skip, const struct plan_stop *stop,
                 struct echo_steps *steps);

#endif
