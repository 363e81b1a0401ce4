/* The world in `status`, `metrics` and requests. Not for others than the control mount. */
#ifndef FS_MOUNT_CONTROL_WORLD_H
#define FS_MOUNT_CONTROL_WORLD_H

#include "fs/mount/control/inside.h"
#include "fs/world/peers.h"

/* Always gives one: of a node without peers, a world of one. */
void control_view(struct control *control, struct world_view *view);
void control_view_release(struct world_view *view);

uint32_t control_gone(const struct world_view *view); /* other nodes that cannot be asked */

void control_add_places(struct json *json, const char *key, const uint64_t number[PLACES]);
/* `world`, a line a node, and what is lost of it. */
void control_add_world(struct json *json, struct control *control, const struct world_view *view,
                       const struct store_stats *stats);
/* Sentences about it, into the array of them. */
void control_add_world_health(struct json *json, const struct control *control, const struct world_view *view);

#endif
