/* Local shuffling (Kumar et al., DIMD): each rank reads its own node's samples, in the order of the epoch.
 *
 * All ranks get as many as they would of the whole order. Where a node owns more, the last ones of the order are not
 * read in this epoch. Where it owns less it gets of the samples that nobody owns, dealt in turn to the nodes that lack
 * some; after that it repeats what it has. A node without any reads from the whole order. */
#ifndef FS_PLAN_LOCAL_H
#define FS_PLAN_LOCAL_H

#include "fs/plan/batches.h"
#include "fs/plan/placement.h"
#include "fs/plan/stop.h"

struct local;

/* All are borrowed. 4 bytes a sample are used. -ENOMEM, -EINTR. */
int local_create(const struct batches *batches, const struct placement *placement, const struct owners *owners,
                 const struct plan_stop *stop, struct local **local);
void local_destroy(struct local *local);
/* What the ranks read in a step, rank after rank: batches_length of it. */
void local_deal(const struct local *local, uint64_t step, uint32_t *out);
uint32_t local_unread(const struct local *local); /* entries of the order that no rank reads */

#endif
