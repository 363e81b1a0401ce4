/* The steps of a mount before its source is scanned: see start.h. */
#ifndef CLI_PREPARE_H
#define CLI_PREPARE_H

#include "cli/start.h"

/* Programs, device and directories that it needs are there. */
int prepare_check(struct start *s, struct str *why);
/* Owner, source and mountpoint are found. */
int prepare_names(struct start *s, struct str *why);
/* The same, and they fit together; a dead mount on the mountpoint is taken away. */
int prepare_places(struct start *s, struct str *why);
/* Where the state directory is, or will be. */
int prepare_state_name(struct start *s);
/* The state directory, its lock, the node's id and the log. */
int prepare_state(struct start *s, struct str *why);

#endif
