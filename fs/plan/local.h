/* Local reading (Kumar et al., DIMD; Nguyen et al., partial-local shuffling): each rank reads its own node's samples,
 * in the order of the epoch, and each sample of the epoch is read once.
 *
 * The whole epoch is dealt to the nodes like one batch by locality: what a node owns beyond its ranks' share goes to
 * nodes that lack some, by balance.h. Where several groups own the dataset a sample goes to one of its owners. The tail
 * is that of the order: `pad` fills up as DistributedSampler does, from the order's beginning. */
#ifndef FS_PLAN_LOCAL_H
#define FS_PLAN_LOCAL_H

#include "fs/plan/batches.h"
#include "fs/plan/placement.h"
#include "fs/plan/stop.h"

struct local;

/* All are borrowed. 4 bytes a sample are used, and 6 more while it is made. -ENOMEM, -EINTR. */
int local_create(const struct batches *batches, const struct placement *placement, const struct owners *owners,
                 const struct plan_stop *stop, struct local **local);
void local_destroy(struct local *local);
/* What the ranks read in a step, rank after rank: batches_length of it. */
void local_deal(const struct local *local, uint64_t step, uint32_t *out);

#endif
