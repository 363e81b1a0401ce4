/* What the feeder does and what it has seen of the loaders, as the control mount shows it. */
#ifndef FS_CONTROL_FEED_VIEW_H
#define FS_CONTROL_FEED_VIEW_H

#include "fs/base/str.h"

struct control;
struct feed_end;
struct json;

/* `feed`; nothing where the mount has no such memory. */
void feed_view_add_status(struct json *json, const struct control *control);
/* Of the list that this was the end of. -ENOMEM. */
int feed_view_add_report(const struct control *control, const struct feed_end *end, struct str *text);

#endif
