/* The reply to `reply=paths`: a line per sample, so that a step can be read by people. */
#ifndef FS_CONTROL_PLAN_PATHS_H
#define FS_CONTROL_PLAN_PATHS_H

#include "fs/catalog/samples.h"
#include "fs/control/protocol.h"
#include "fs/plan/plan-request.h"

/* step TAB rank TAB number TAB path, and for a record TAB offset TAB length. Steps are counted from where `skip` ends.
 * -ENOMEM: `why` tells; -EINTR. */
int plan_paths(const struct catalog *c, const struct samples *list, const struct plan_request *wanted,
               const struct plan_shape *shape, const uint32_t *lists, const struct asker *asker, struct str *reply,
               struct str *why);

#endif
