/* Limits of processes (ulimit) that are too low for a mount. */
#ifndef CLI_MOUNT_LIMITS_H
#define CLI_MOUNT_LIMITS_H

#include "fs/base/str.h"

/* Raise them as far as this user may. -EINVAL: one is still too low, see `why`. */
int limits_raise(struct str *why);
void limits_restore(void); /* for a command of the user */

#endif
