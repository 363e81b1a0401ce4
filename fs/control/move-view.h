/* The last turn of the world and the move that follows it, as the control mount shows them. */
#ifndef FS_CONTROL_MOVE_VIEW_H
#define FS_CONTROL_MOVE_VIEW_H

#include "fs/world/peers.h"

struct json;

/* `turn`, and `move` of all nodes together. */
void move_view_add_status(struct json *json, const struct world_view *view);
/* What is known of one node. */
void move_view_add_node(struct json *json, const struct node_news *news);

#endif
