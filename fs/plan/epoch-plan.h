/* A plan: what each rank reads in an epoch, in which order. A pure function of order, owners and parameters, in integer
 * arithmetic.
 *
 *   order → echo (example) → merge by nodes (local) → cut into global batches → echo (batch) → deal to ranks → swap
 *
 * A list is the concatenation of a rank's local batches. The digest covers all ranks' lists: a chain of XXH3-128 hashes
 * of the steps, each over the previous hash and the step's batches, rank after rank. */
#ifndef FS_PLAN_EPOCH_PLAN_H
#define FS_PLAN_EPOCH_PLAN_H

#include "fs/base/hash.h"
#include "fs/base/str.h"
#include "fs/plan/batches.h"
#include "fs/plan/deal.h"
#include "fs/plan/echo.h"
#include "fs/plan/stop.h"

enum plan_mode { PLAN_LOCALITY, PLAN_REGULAR, PLAN_LOCAL };
enum plan_echo_at { ECHO_AT_EXAMPLE, ECHO_AT_BATCH };

/* The arrays are borrowed while the plan exists. */
struct plan_input {
    const uint32_t *order; /* indices of samples in `owners` */
    uint32_t count;
    uint32_t ranks, batch; /* batch: of one rank */
    enum plan_mode mode;
    enum plan_tail tail;
    uint32_t *local; /* memory for plan_local_most entries, if the mode needs any; NULL: allocated */
    uint64_t skip;   /* entries of the sequence that is dealt, echoes included, of all ranks together */
    enum plan_echo_at echo_at;
    struct echo echo; /* ECHO_ONE: no echo */
    uint32_t samples; /* indices are below this */
    struct owners owners;
    const uint32_t *node_of_rank;                   /* NULL: evenly distributed */
    uint64_t (*bytes)(void *user, uint32_t sample); /* NULL: bytes are not counted */
    void *user;
    uint64_t bytes_of_all;                         /* of all samples, if the order has each of them once; 0: unknown */
    uint64_t (*cost)(void *user, uint32_t sample); /* NULL: ranks are not balanced by cost */
    uint32_t balance, window;                      /* with `cost`: see swaps.h */
    bool chosen;                                   /* only steps `from` to `to` are wanted */
    uint64_t from, to;                             /* counted from the end of `skip` */
};

/* Costs of the slowest rank of a window, divided by the mean, in millionths. */
struct plan_costs {
    uint32_t median_before, worst_before, median_after, worst_after;
    uint64_t swaps;
    int64_t moved, moved_bytes; /* additional moves due to swaps */
};

struct plan_summary {
    struct digest digest;
    uint64_t steps, samples; /* samples: read by all ranks, echoes included */
    uint64_t local, moved, unowned;
    uint64_t fresh, fresh_bytes;    /* first uses; without echo, all samples */
    uint64_t refetched, duplicates; /* repeats at another node than before; samples that are twice in a batch */
    uint64_t moved_bytes, unowned_bytes;
    uint64_t transfers;             /* between nodes; not for mode=regular */
    uint64_t worst_moved, worst_of; /* of the step in which the largest part of the batch moves */
    uint64_t unread;                /* entries of the order that the tail leaves out */
    struct plan_costs costs;        /* with `cost` and several ranks */
};

struct plan;

/* Known before anything is made: the maximum number of entries of all lists together; and the bytes needed to make
 * them, in addition to order, owners and lists. The input's order and owners may be missing, but not their sizes. */
uint64_t plan_entries_most(const struct plan_input *input);
uint64_t plan_local_most(const struct plan_input *input);
uint64_t plan_memory_most(const struct plan_input *input);

/* -EINVAL, -ERANGE, -EDOM, -E2BIG, -ENOMEM: see `why`; -EINTR. */
int plan_create(const struct plan_input *input, const struct plan_stop *stop, struct plan **plan, struct str *why);
void plan_destroy(struct plan *plan);

/* Where each rank's list is in the concatenation of all lists. */
struct plan_shape {
    uint32_t ranks;
    uint32_t last; /* samples of the last batch */
    uint64_t full; /* entries of a list before it */
    uint64_t uses; /* of the last batch */
    uint32_t crop; /* entries of the first step that no list has: then all steps are of the last batch */
};
struct plan_shape plan_shape(const struct plan *plan);
uint64_t plan_shape_length(const struct plan_shape *shape, uint32_t rank);
uint64_t plan_shape_place(const struct plan_shape *shape, uint32_t rank); /* rank == ranks: the end of all lists */
uint64_t plan_length_all(const struct plan *plan);

/* Computes all ranks' lists. -EINTR, -ENOMEM. */
int plan_run(struct plan *plan, uint32_t *lists, const struct plan_stop *stop, struct plan_summary *summary);

#endif
