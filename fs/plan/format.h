/* Lists as the reply to a request has them. */
#ifndef FS_PLAN_FORMAT_H
#define FS_PLAN_FORMAT_H

#include "fs/plan/plan.h"
#include "fs/plan/request.h"

/* Appends a rank's list, or all of them: text has one index a line, or one line a rank; u32 and u64 are the lists one
 * after the other. `lists` has those of all ranks. */
void format_lists(struct str *out, enum plan_reply reply, const struct plan_shape *shape, const uint32_t *lists,
                  uint32_t rank);

#endif
