/* Who works in a mount: processes that have a file of it open or mapped, or their working directory there. */
#ifndef CLI_LIVE_USERS_H
#define CLI_LIVE_USERS_H

#include "fs/base/str.h"

/* "bash (1234), python3 (99)", a few of them; found from /proc, without a look into the mount. Only processes that this
 * user may look at are seen; this one is not. Returns how many. */
int users_of_mount(const char *mountpoint, struct str *names);
/* The same for processes whose mount namespace has a mount of dealfs, by device and source. A namespace (a container,
 * say) that was made while a mount stood has a copy of it, and where mounts do not propagate keeps that when ours is
 * gone. */
int users_of_device(unsigned major, unsigned minor, const char *source, struct str *names);

#endif
