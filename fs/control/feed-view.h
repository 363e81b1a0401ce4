/* What the feeder does and what it has seen of the loaders, as the control mount shows it. */
#ifndef FS_CONTROL_FEED_VIEW_H
#define FS_CONTROL_FEED_VIEW_H

#include "fs/base/str.h"

struct control;
struct json;

/* `feed`; nothing where the mount has no such memory. */
void feed_view_add_status(struct json *json, const struct control *control);
void feed_view_add_metrics(struct str *metrics, const struct control *control);

#endif
