/* The world, for the control mount. */
#ifndef FS_CONTROL_WORLD_VIEW_H
#define FS_CONTROL_WORLD_VIEW_H

#include "fs/store/store.h"
#include "fs/world/peers.h"

struct asker;
struct control;
struct json;
struct str;

/* Always succeeds: a node without peers is a world of one. */
struct world_view world_view_get(struct control *control);
void world_view_release(struct world_view *view);
#define CLEANUP_WORLD_VIEW __attribute__((cleanup(world_view_release)))

/* 0: this node knows the layout of its world, or was never in one. A restarted server without it waits some seconds for
 * its courier; with `asker` NULL it does not wait. -EAGAIN, and `why` in words. */
int world_view_await(struct control *control, const struct asker *asker, struct str *why);

uint32_t world_view_gone(const struct world_view *view); /* number of other nodes that cannot be asked */
/* The share of the dataset that they own, in tenths of a percent. */
uint64_t world_view_lost_share(const struct control *control, const struct world_view *view);
/* The command that would form the world again. */
void world_view_add_rejoin(const struct control *control, const struct world_view *view, struct str *text);

void world_view_add_places(struct json *json, const char *key, const uint64_t number[PLACES]);
/* `world`, one line per node, and what of it is lost. */
void world_view_add_status(struct json *json, struct control *control, const struct world_view *view,
                           const struct store_stats *stats);

#endif
