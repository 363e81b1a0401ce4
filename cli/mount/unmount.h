/* Unmounts a live mount, both parts, and makes sure that nothing of it stays. */
#ifndef CLI_MOUNT_UNMOUNT_H
#define CLI_MOUNT_UNMOUNT_H

#include "cli/live/live.h"

enum { UNMOUNT_SECONDS = 120 };

/* `lazy`: processes inside stay inside until they leave; else -EBUSY with their names in `why`, and the mount is
 * unchanged. A mount that is dead or hangs is always unmounted lazily. Returns when its processes have ended;
 * -ETIMEDOUT: they have not ended in time, which is normal for a lazy unmount: the mount is gone from its mountpoint
 * nevertheless. */
int unmount_live(const struct live *live, bool lazy, struct str *why);

#endif
