/* Formats lists for the reply to a request. */
#ifndef FS_PLAN_LIST_FORMAT_H
#define FS_PLAN_LIST_FORMAT_H

#include "fs/plan/epoch-plan.h"
#include "fs/plan/plan-request.h"

/* The entries of a rank's list that a worker loads; returns their number. */
uint64_t format_part(const struct plan_request *wanted, const uint32_t *list, uint64_t n, uint32_t *to);
/* Append one list; formats as below. */
void format_list(struct str *out, enum plan_reply reply, const uint32_t *list, uint64_t n);
/* Append a rank's list, or all of them: text has one index per line, or one line per rank; u32 and u64 are concatenated
 * lists. `lists` has those of all ranks. */
void format_lists(struct str *out, enum plan_reply reply, const struct plan_shape *shape, const uint32_t *lists,
                  uint32_t rank);
/* Maximum bytes for a list of `count` samples. */
uint64_t format_most(enum plan_reply reply, const struct plan_shape *shape, uint32_t samples, uint32_t rank);

#endif
