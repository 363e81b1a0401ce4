/* Local reading (Kumar et al., DIMD; Nguyen et al., partial-local shuffling): each rank reads its own node's samples,
 * in the order of the epoch, and each sample of the epoch is read once.
 *
 *   1. The order is dealt to the nodes in equal parts, like one batch by locality: samples that a node owns beyond its
 *      part go to nodes that lack some (balance.h). If several groups own the dataset, a sample goes to one of its
 *      owners.
 *   2. The nodes' lists are merged, one sample of each node in turn:
 *
 *   order    a1 b1 b2 a2 a3 b3 b4 a4
 *   merged   a1 b1 a2 b2 a3 b3 a4 b4
 *
 * A global batch cut from the merged order has the same number of samples of each node. If all nodes have the same
 * number of ranks, dealing the batch by locality moves no further samples. The merged order does not depend on the
 * ranks, so an epoch can be resumed with other ranks: the samples that were read are its beginning. It does depend on
 * the layout. */
#ifndef FS_PLAN_LOCAL_H
#define FS_PLAN_LOCAL_H

#include "fs/plan/placement.h"
#include "fs/plan/stop.h"

/* The merged order, of `count` entries. Temporarily uses 2 bytes per entry. -ENOMEM, -EINTR. */
int local_order(const struct placement *placement, const struct owners *owners, const uint32_t *order, uint32_t count,
                const struct plan_stop *stop, uint32_t *merged);

#endif
