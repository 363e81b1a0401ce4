/* A plan: what each rank reads in an epoch, in which order. A pure function of order, owners and parameters, in
 * integers.
 *
 *   order → echo (example) → merge by nodes (local) → cut into global batches → echo (batch) → deal to ranks → swap
 *
 * A list is a rank's local batches, one after the other. The digest is over all ranks' lists: the XXH3-128 hashes of
 * the steps, each over the hash before it and the step's batches, rank after rank. */
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

/* The arrays are borrowed for as long as the plan lives. */
struct plan_input {
    const uint32_t *order; /* indices of samples that `owners` has */
    uint32_t count;
    uint32_t ranks, batch; /* batch: of one rank */
    enum plan_mode mode;
    enum plan_tail tail;
    uint32_t *local; /* room for plan_local_most entries, where the mode has any; NULL: allocated */
    uint64_t skip;   /* entries of the sequence that is dealt, echoes among them */
    enum plan_echo_at echo_at;
    struct echo echo; /* ECHO_ONE: none */
    uint32_t samples; /* indices are below it */
    struct owners owners;
    const uint32_t *node_of_rank;                   /* NULL: evenly */
    uint64_t (*bytes)(void *user, uint32_t sample); /* NULL: bytes are not counted */
    void *user;
    uint64_t bytes_of_all; /* of all samples, where the order has each of them once; 0: not known */
    uint64_t (*cost)(void *user, uint32_t sample); /* NULL: ranks are not made equal in cost */
    uint32_t balance, window;                      /* with `cost`: swaps.h */
    bool chosen;                                   /* of the steps only those from `from` to `to` are wanted */
    uint64_t from, to;                             /* counted from where `skip` ends */
};

/* What the costs of ranks came to: a window's slowest rank by the mean, in millionths. */
struct plan_costs {
    uint32_t median_before, worst_before, median_after, worst_after;
    uint64_t swaps;
    int64_t moved, moved_bytes; /* how many more than without swaps */
};

struct plan_summary {
    struct digest digest;
    uint64_t steps, samples; /* samples: that all ranks read, echoes among them */
    uint64_t local, moved, unowned;
    uint64_t fresh, fresh_bytes; /* samples at their first use; where nothing is echoed, all are */
    uint64_t refetched,
        duplicates; /* repeats that another node than before reads; samples that their batch has twice */
    uint64_t moved_bytes, unowned_bytes;
    uint64_t transfers;             /* between nodes; not in mode=regular */
    uint64_t worst_moved, worst_of; /* of the step where most of the batch moves */
    uint64_t unread;                /* entries of the order that the tail leaves out */
    struct plan_costs costs;        /* with `cost` and several ranks */
};

struct plan;

/* What can be said before anything is made: the largest number of entries of all lists together, and of bytes that
 * beside order, owners and lists does it take to make them. The input's order and owners need not be there yet, except
 * for their numbers. */
uint64_t plan_entries_most(const struct plan_input *input);
uint64_t plan_local_most(const struct plan_input *input);
uint64_t plan_memory_most(const struct plan_input *input);

/* -EINVAL, -ERANGE, -EDOM, -E2BIG, -ENOMEM: `why` tells; -EINTR. */
int plan_create(const struct plan_input *input, const struct plan_stop *stop, struct plan **plan, struct str *why);
void plan_destroy(struct plan *plan);

/* Where each rank's list lies among all, one after the other. */
struct plan_shape {
    uint32_t ranks;
    uint32_t last; /* samples of the last batch */
    uint64_t full; /* entries of a list before it */
    uint64_t uses; /* of the last batch */
};
struct plan_shape plan_shape(const struct plan *plan);
uint64_t plan_shape_length(const struct plan_shape *shape, uint32_t rank);
uint64_t plan_shape_place(const struct plan_shape *shape, uint32_t rank); /* of ranks: where all end */
uint64_t plan_length_all(const struct plan *plan);

/* All ranks' lists. -EINTR, -ENOMEM. */
int plan_run(struct plan *plan, uint32_t *lists, const struct plan_stop *stop, struct plan_summary *summary);

#endif
