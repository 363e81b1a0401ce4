/* Views of what the feeder does and of what loaders have read, for the control mount. */
#ifndef FS_CONTROL_FEED_VIEW_H
#define FS_CONTROL_FEED_VIEW_H

#include "fs/base/str.h"

#include <stdint.h>

struct control;
struct feed;
struct feed_end;
struct json;

/* `feed`; nothing if the mount has no such memory. */
void feed_view_add_status(struct json *json, const struct control *control);
/* The rank with this number in a plan, as the feeder sees it; NULL: not yet. */
const struct feed_rank *feed_view_rank(const struct feed *feed, unsigned slot, uint64_t number, uint32_t rank);
/* The report about the list with this end. -ENOMEM. */
int feed_view_add_report(const struct control *control, const struct feed_end *end, struct str *text);

#endif
