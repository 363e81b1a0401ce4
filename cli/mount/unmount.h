/* Take a live mount away, both parts of it, and see that nothing of it stays. */
#ifndef CLI_MOUNT_UNMOUNT_H
#define CLI_MOUNT_UNMOUNT_H

#include "cli/live/live.h"

enum { UNMOUNT_SECONDS = 120 };

/* `lazy`: processes inside stay inside until they leave; else -EBUSY with who it is in `why`, and the mount is as it
 * was. A mount that is dead or hangs goes lazily in any case. Returns when its processes have ended; -ETIMEDOUT when
 * they have not in time, which a lazy one may have good reason for: the mount is gone from its place all the same. */
int unmount_live(const struct live *live, bool lazy, struct str *why);

#endif
