/* User and mount namespaces: mount without root and without fusermount3. */
#ifndef CLI_MOUNT_NAMESPACE_H
#define CLI_MOUNT_NAMESPACE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

/* Gives this process its own mount namespace and, if it may not mount, its own user namespace (`mapped`), in which user
 * and group keep their numbers. Later mounts are visible to no other process. */
int namespace_make(bool *mapped, struct str *why);
/* Enter the namespaces of another process; the working directory keeps its path. */
int namespace_enter(pid_t pid, struct str *why);

#endif
