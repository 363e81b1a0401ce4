/* `mount` and `join` under a launcher. Both end by becoming this node's courier. */
#ifndef CLI_MOUNT_NODES_H
#define CLI_MOUNT_NODES_H

#include "cli/base/launcher.h"
#include "cli/mount/start.h"

/* `dealfs mount` under a launcher: mounts if there is no mount, and joins. Returns only on failure: -errno, with a line
 * for people in `why`. */
int world_mount(struct start *s, const struct launcher *launcher, struct str *why);

struct world_wish {
    unsigned nodes, groups; /* 0: any; else the mounts must have these */
};
/* `dealfs join`: for an existing mount. Returns in the same way. */
int world_join(const char *mountpoint, const struct launcher *launcher, const struct world_wish *wish, struct str *why);

#endif
