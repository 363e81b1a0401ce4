/* To deal a global batch: which rank gets which of its samples. A batch is dealt without a look at any other, so that
 * every node and every slice of a plan comes to the same.
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
    uint32_t transfers; /* between nodes, where deal_locality counted them */
};

/* Both are borrowed; batches have at most `longest` samples. 2 bytes a sample of it are used. -ENOMEM. */
int deal_create(const struct placement *placement, const struct owners *owners, uint32_t longest, struct deal **deal);
void deal_destroy(struct deal *deal);

/* Who wants to know of each dealt sample that is not at a rank of its owner. NULL in place of the struct: nobody. */
struct deal_watch {
    void (*elsewhere)(void *user, uint32_t sample, bool owned);
    void *user;
};

/* Each to a rank of its owner as far as the ranks' shares go; the rest as balance.h has it. Of an owner's samples the
 * last ones by position move. */
void deal_locality(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out, const struct deal_watch *watch,
                   struct deal_tally *tally);
/* As DistributedSampler: position i to rank i mod ranks. */
void deal_regular(struct deal *deal, const uint32_t *batch, uint32_t n, uint32_t *out);

/* Of samples that were dealt in any way, rank after rank: where are they? */
void deal_count(const struct deal *deal, const uint32_t *out, uint32_t n, const struct deal_watch *watch,
                struct deal_tally *tally);

#endif
