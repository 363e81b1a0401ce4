/* `dealfs status` for people: a mount's status as lines. */
#ifndef CLI_LIVE_STATUS_TEXT_H
#define CLI_LIVE_STATUS_TEXT_H

#include "cli/live/live.h"
#include "fs/base/str.h"

/* Returns the exit status of `dealfs status`: COMMAND_DONE, COMMAND_DEGRADED or COMMAND_FAULT. */
int status_add_text(struct str *out, const struct live *live, const struct str *status);

/* The same in one line: state, node, how full it is, and the first sentence of its health. */
int status_add_line(struct str *out, const struct live *live, const struct str *status);

#endif
