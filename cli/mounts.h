/* The step that puts the two mounts up, and its way back: see start.h. */
#ifndef CLI_MOUNTS_H
#define CLI_MOUNTS_H

#include "cli/start.h"

int mounts_put_up(struct start *s, struct str *why);
/* Both, lazily, where they are ours. */
void mounts_take_away(struct start *s);
/* Returns when the keeper and its server have ended; by force if they do not by themselves. */
void mounts_await_end(struct start *s);

#endif
