/* The plans that are to be fed, for the feeder (fs/wire/feed.h): what was asked for with feed=yes. */
#ifndef FS_CONTROL_FEED_TABLE_H
#define FS_CONTROL_FEED_TABLE_H

#include "fs/plan/plan-request.h"
#include "fs/wire/feed.h"

struct control;
/* What a plan was made of, and which of its ranks are on this node. */
struct feed_wish {
    const struct plan_request *wanted;
    const struct digest *layout;  /* zeros: there never was a world */
    const struct digest *digest;  /* of the plan */
    const uint32_t *node_of_rank; /* NULL: evenly */
    uint32_t nodes, me;
};
/* The same plan asked for again keeps its number; another one takes a free place, or that of the one whose asking is
 * longest ago. Any thread of the server. */
void feed_table_ask(struct control *control, const struct feed_wish *wish);

#endif
