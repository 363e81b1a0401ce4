/* The order of an epoch: given by the request, or computed from the seed. */
#ifndef FS_CONTROL_PLAN_ORDER_H
#define FS_CONTROL_PLAN_ORDER_H

#include "fs/control/plan-memory.h"
#include "fs/control/plan-question.h"

/* `without`: samples to leave out; NULL: none. `order` and its memory belong to the caller. -EINVAL, -ENOMEM, …: see
 * `why`; -EINTR. */
int plan_order_make(const struct plan_memory_of *of, const struct plan_question *question,
                    const struct samples *without, struct plan_memory *order, uint32_t *count);
/* -ENOMEM. Takes a moment for millions of samples, once per list. */
int plan_order_digest(const struct plan_question *question, struct samples *list, struct samples *without,
                      struct order_digest *order);
/* Checks `skip=` and `resume=` of a request in a world of `nodes` nodes. -EINVAL: the layout is needed; -ESTALE: the
 * order has changed. */
int plan_order_resume(const struct plan_question *question, struct samples *list, struct samples *without,
                      uint32_t nodes);

#endif
