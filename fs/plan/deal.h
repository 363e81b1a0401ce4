/* Deals a global batch: which rank gets which of its samples. Each batch is dealt independently, so that every node and
 * every slice of a plan has the same result. Exception: the batches of an echoed order are dealt one after the other,
 * since a repeat belongs to the node that used the sample first (uses.h).
 *
 * The result is the batch in another order, rank after rank; batches_share and batches_place give each rank's part. */
#ifndef FS_PLAN_DEAL_H
#define FS_PLAN_DEAL_H

#include "fs/plan/balance.h"
#include "fs/plan/placement.h"

#include <stdbool.h>

struct deal;

/* Counts over n dealt samples. */
struct deal_tally {
    uint32_t local;     /* samples at a rank of their owner */
    uint32_t unowned;   /* without an owner */
    uint32_t moved;     /* at a rank of another node than their owner */
    uint32_t transfers; /* between nodes; only deal_locality counts them */
    /* for an echoed order: */
    uint32_t repeats;    /* samples that were used before */
    uint32_t refetched;  /* of these, at a node that neither used the sample first nor owns it */
    uint32_t duplicates; /* samples that are already in the same batch */
};

/* `placement` and `owners` are borrowed. Batches have at most `longest` samples; 2 bytes per sample of it are used.
 * `echoed`: number of samples, if the order repeats some; else 0. `positions`: ranks get positions in the batch instead
 * of its samples, and of a tally only `transfers` is valid; call deal_count when the samples are known. -ENOMEM. */
int deal_create(const struct placement *placement, const struct owners *owners, uint32_t longest, uint32_t echoed,
                bool positions, struct deal **deal);
void deal_destroy(struct deal *deal);
void deal_begin(struct deal *deal); /* start again with the first batch */
/* Per sample of an echoed order: the node that used it first, or NOT_USED (uses.h). NULL: the order is not echoed. */
const uint16_t *deal_first(const struct deal *deal);

/* Callbacks for each dealt sample that is not at a rank of its owner, and for each that is used first. The struct may
 * be NULL. */
struct deal_watch {
    void (*elsewhere)(void *user, uint32_t sample, bool owned);
    void (*fresh)(void *user, uint32_t sample); /* only for echoed orders */
    void *user;
};

/* Each sample goes to a rank of its owner as far as the ranks' shares allow; the rest as in balance.h. Of an owner's
 * samples, the last ones by position move; repeats move after all others. */
void deal_locality(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out, const struct deal_watch *watch,
                   struct deal_tally *tally);
/* Deal to nodes, not ranks, in equal parts: out[i] belongs to node i mod nodes, whose samples are in order of position.
 * Which samples move is determined as above, but repeats are treated like other samples. */
void deal_merged(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out);
/* Like DistributedSampler: position i goes to rank i mod ranks. */
void deal_regular(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out);

/* Counts at which nodes samples are, after any of the functions above. `out` has them rank after rank. `owner`: their
 * owners in the first group, or NULL. */
void deal_count(struct deal *deal, const uint32_t *out, const uint16_t *owner, uint32_t n,
                const struct deal_watch *watch, struct deal_tally *tally);

#endif
