/* Many nodes: what `mount` and `join` do under a launcher. Both end by becoming this node's courier. */
#ifndef CLI_MOUNT_NODES_H
#define CLI_MOUNT_NODES_H

#include "cli/base/launcher.h"
#include "cli/mount/start.h"

/* `dealfs mount` under a launcher: mounts where there is no mount, and joins. `list`: the option lists as they were
 * given, after `s->options` was parsed from them. Returns only when it fails: -errno, with the line for people in
 * `why`. */
int world_mount(struct start *s, const struct launcher *launcher, char *const list[], int lists, struct str *why);

struct world_wish {
    unsigned nodes, groups; /* 0: any; as the mounts have it */
};
/* `dealfs join`: over the mount that is there. The same way back. */
int world_join(const char *mountpoint, const struct launcher *launcher, const struct world_wish *wish, struct str *why);

#endif
