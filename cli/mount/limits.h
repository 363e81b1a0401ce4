/* The limits of processes (ulimit) that a mount cannot live with. */
#ifndef CLI_MOUNT_LIMITS_H
#define CLI_MOUNT_LIMITS_H

#include "fs/base/str.h"

/* Raise those that are too low, as far as this user may. -EINVAL: one still is, and `why` says which. */
int limits_raise(struct str *why);
void limits_restore(void); /* for a command of the user's */

#endif
