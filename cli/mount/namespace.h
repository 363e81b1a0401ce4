/* User and mount namespaces: a mount without root and without fusermount3. */
#ifndef CLI_MOUNT_NAMESPACE_H
#define CLI_MOUNT_NAMESPACE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

/* This process gets a mount namespace of its own, and, where it may not mount yet, a user namespace of its own
 * (`mapped`), in which its user and group are themselves. What is mounted from here on nobody else sees. */
int namespace_make(bool *mapped, struct str *why);
/* Into the namespaces of another process, the working directory staying what it is called. */
int namespace_enter(pid_t pid, struct str *why);

#endif
