/* `dealfs status` for people: a mount's status as lines. */
#ifndef CLI_LIVE_STATUS_TEXT_H
#define CLI_LIVE_STATUS_TEXT_H

#include "cli/live/live.h"
#include "fs/base/str.h"

/* Returns whether the mount is healthy. */
bool status_add_text(struct str *out, const struct live *live, const struct str *status);

#endif
