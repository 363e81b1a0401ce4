/* Lists as the reply to a request has them. */
#ifndef FS_PLAN_LIST_FORMAT_H
#define FS_PLAN_LIST_FORMAT_H

#include "fs/plan/epoch-plan.h"
#include "fs/plan/plan-request.h"

/* Of a rank's list of n entries, those that a worker loads; returns how many. */
uint64_t format_part(const struct plan_request *wanted, const uint32_t *list, uint64_t n, uint32_t *to);
/* Appends one list, as below. */
void format_list(struct str *out, enum plan_reply reply, const uint32_t *list, uint64_t n);
/* Appends a rank's list, or all of them: text has one index a line, or one line per rank; u32 and u64 are the lists one
 * after the other. `lists` has those of all ranks. */
void format_lists(struct str *out, enum plan_reply reply, const struct plan_shape *shape, const uint32_t *lists,
                  uint32_t rank);
/* At most this many bytes, for a list of `count` samples. */
uint64_t format_most(enum plan_reply reply, const struct plan_shape *shape, uint32_t samples, uint32_t rank);

#endif
