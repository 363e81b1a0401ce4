/* Implements mount-health.h. */
#include "fs/attach/mount-health.h"

#include <errno.h>

/* ENOTCONN and ECONNABORTED are the kernel's errors for an ended connection. With ECONNREFUSED the connection lives: a
 * server died while it answered INIT, and the next one answers it. */
enum mount_health mount_health_of(int error)
{
    switch (-error) {
    case 0:
        return MOUNT_ANSWERS;
    case ENOTCONN:
    case ECONNABORTED:
        return MOUNT_DEAD;
    case ETIMEDOUT:
        return MOUNT_HANGS;
    case EACCES:
    case EPERM:
        return MOUNT_DENIED;
    }
    return MOUNT_UNKNOWN;
}
