/* The order of an epoch: the one that a request brings, or one that is made of the seed. */
#ifndef FS_CONTROL_PLAN_ORDER_H
#define FS_CONTROL_PLAN_ORDER_H

#include "fs/control/plan-memory.h"
#include "fs/control/plan-question.h"

/* `without`: samples that are left out; NULL: none. `order` is the caller's, as is its memory. -EINVAL, -ENOMEM, …:
 * `why` tells; -EINTR. */
int plan_order_make(struct control *control, const struct plan_question *question, const struct samples *list,
                    const struct samples *without, const struct charge *like, struct plan_memory *order,
                    uint32_t *count, struct str *why);

#endif
