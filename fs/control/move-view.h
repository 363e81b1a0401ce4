/* The last turn of the world and the move after it, for the control mount. */
#ifndef FS_CONTROL_MOVE_VIEW_H
#define FS_CONTROL_MOVE_VIEW_H

#include "fs/world/peers.h"

struct json;

/* `turn`, and `move` summed over all nodes. */
void move_view_add_status(struct json *json, const struct world_view *view);
/* The move of one node. */
void move_view_add_node(struct json *json, const struct node_news *news);

#endif
