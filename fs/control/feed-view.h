/* Views of what the feeder does and of what loaders have read, for the control mount. */
#ifndef FS_CONTROL_FEED_VIEW_H
#define FS_CONTROL_FEED_VIEW_H

#include "fs/base/str.h"

struct control;
struct feed_end;
struct json;

/* `feed`; nothing if the mount has no such memory. */
void feed_view_add_status(struct json *json, const struct control *control);
/* The report about the list with this end. -ENOMEM. */
int feed_view_add_report(const struct control *control, const struct feed_end *end, struct str *text);

#endif
