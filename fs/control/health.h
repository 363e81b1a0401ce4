/* Problems of the mount, for `status`. */
#ifndef FS_CONTROL_HEALTH_H
#define FS_CONTROL_HEALTH_H

#include "fs/control/world-view.h"

/* `health`: an array of sentences. */
void health_add_status(struct json *json, const struct control *control, const struct world_view *view,
                       const struct store_stats *stats);
const char *health_tier_error(const struct tier_status *tier); /* NULL: no error */

#endif
