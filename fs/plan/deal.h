/* To deal a global batch: which rank gets which of its samples. A batch is dealt without a look at any other, so that
 * every node and every slice of a plan comes to the same; except for an echoed order, whose batches are dealt one after
 * the other: a repeat belongs to the node that used the sample first (uses.h).
 *
 * The result is the batch in another order, rank after rank; batches_share and batches_place say which part is whose.
 */
#ifndef FS_PLAN_DEAL_H
#define FS_PLAN_DEAL_H

#include "fs/plan/balance.h"
#include "fs/plan/placement.h"

#include <stdbool.h>

struct deal;

/* What a deal of n samples came to. */
struct deal_tally {
    uint32_t local;     /* samples at a rank of their owner */
    uint32_t unowned;   /* of nobody */
    uint32_t moved;     /* at a rank of another node than their owner */
    uint32_t transfers; /* between nodes; deal_locality counts them */
    /* of an echoed order: */
    uint32_t repeats;    /* samples that were used before */
    uint32_t refetched;  /* of those, at a node that neither used the sample first nor owns it */
    uint32_t duplicates; /* samples that the same batch has already */
};

/* Both are borrowed; batches have at most `longest` samples. 2 bytes per sample of it are used. `echoed`: the number of
 * samples, of which the order repeats some; 0: it is not echoed. `positions`: ranks get positions in the batch in place
 * of its samples, and of a tally only `transfers` is true; deal_count makes one when it is known which sample goes
 * where. -ENOMEM. */
int deal_create(const struct placement *placement, const struct owners *owners, uint32_t longest, uint32_t echoed,
                bool positions, struct deal **deal);
void deal_destroy(struct deal *deal);
void deal_begin(struct deal *deal); /* again from the first batch */
/* By sample, of an echoed order: the node that used it first, or NOT_USED (uses.h). NULL: it is not echoed. */
const uint16_t *deal_first(const struct deal *deal);

/* Who wants to know of each dealt sample that is not at a rank of its owner, and of each that is used first. NULL in
 * place of the struct: nobody. */
struct deal_watch {
    void (*elsewhere)(void *user, uint32_t sample, bool owned);
    void (*fresh)(void *user, uint32_t sample); /* told of echoed orders only */
    void *user;
};

/* Each to a rank of its owner as far as the ranks' shares go; the rest as balance.h has it. Of an owner's samples the
 * last ones by position move, repeats after all others. */
void deal_locality(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out, const struct deal_watch *watch,
                   struct deal_tally *tally);
/* To nodes, not to ranks, in equal parts: out[i] is of node i mod nodes, whose samples are by position. Which samples
 * stay with their owner and which move is as above, but repeats are like all others. */
void deal_merged(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out);
/* As DistributedSampler: position i to rank i mod ranks. */
void deal_regular(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out);

/* Of samples that were dealt in any way, rank after rank: where are they? `owner`: those in the first group, or
 * NULL. */
void deal_count(struct deal *deal, const uint32_t *out, const uint16_t *owner, uint32_t n,
                const struct deal_watch *watch, struct deal_tally *tally);

#endif
