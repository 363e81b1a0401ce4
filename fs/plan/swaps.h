/* Swaps samples of a step between ranks until no rank costs much more than the mean: the rule is in the file COST. */
#ifndef FS_PLAN_SWAPS_H
#define FS_PLAN_SWAPS_H

#include "fs/plan/placement.h"
#include "fs/plan/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* In millionths. */
enum { BALANCE_ONE = 1000000, BALANCE_DEFAULT = 1020000, BALANCE_MOST = 1000 * BALANCE_ONE };
enum { WINDOW_MOST = 4096 };
/* Maximum cost of a window's samples together, so that nothing overflows. */
#define SWAPS_COST_MOST (UINT64_C(1) << 52)

/* Borrowed while the swaps exist. */
struct swap_terms {
    const struct placement *placement;
    const struct owners *owners;
    const uint16_t *first; /* per sample: the node that used it first, or NOT_USED; NULL: no echo */
    uint32_t balance;      /* in millionths */
    uint32_t window;       /* maximum number of steps */
    uint32_t longest;      /* maximum number of samples in a step */
    bool within_nodes;     /* only ranks of the same node swap */
    uint64_t (*cost)(void *user, uint32_t sample);
    uint64_t (*bytes)(void *user, uint32_t sample); /* NULL: all samples count as equally large */
    void *user;
};

/* The result of the swaps of a window. */
struct swap_tally {
    uint64_t swaps;
    int64_t moved, moved_bytes; /* additional samples and bytes away from their owners */
    uint32_t before, after;     /* the slowest rank's cost divided by the mean, in millionths */
};

struct swaps;

uint64_t swaps_memory(uint32_t ranks, uint64_t longest, uint32_t window);
int swaps_create(const struct swap_terms *terms, struct swaps **swaps); /* -ENOMEM */
void swaps_destroy(struct swaps *swaps);

/* Begin a window, add its steps, and run. `dealt` has positions in the batch, rank after rank, as in
 * batches_place(). */
void swaps_begin(struct swaps *swaps);
void swaps_add(struct swaps *swaps, const uint32_t *batch, const uint32_t *dealt, uint32_t n);
/* -EINTR; -ERANGE: the samples cost more than SWAPS_COST_MOST. */
int swaps_run(struct swaps *swaps, const struct plan_stop *stop, struct swap_tally *tally);
/* After swaps_run: the samples of a step, rank after rank, and their owners in the first group. */
const uint32_t *swaps_step(const struct swaps *swaps, uint32_t step, uint32_t *n, const uint16_t **owner);

#endif
