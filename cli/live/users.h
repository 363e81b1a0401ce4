/* Processes that use a mount: they have a file of it open or mapped, or their working directory is in it. */
#ifndef CLI_LIVE_USERS_H
#define CLI_LIVE_USERS_H

#include "fs/base/str.h"

/* "bash (1234), python3 (99)", a few of them; found in /proc without accessing the mount. Only processes that this user
 * may examine are found; this process does not count. Returns their number; -errno: none was found, but some could not
 * be examined. */
int users_of_mount(const char *mountpoint, struct str *names);
/* The same for processes whose mount namespace has a dealfs mount, by device and source. A namespace (for example a
 * container's) that was made while a mount existed has a copy of it; if mounts do not propagate, the copy stays when
 * ours is gone. */
int users_of_device(unsigned major, unsigned minor, const char *source, struct str *names);

#endif
