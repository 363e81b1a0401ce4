/* What the result of an access to a mount says about it. Everything that removes, replaces or reports mounts decides by
 * this function. */
#ifndef FS_ATTACH_MOUNT_HEALTH_H
#define FS_ATTACH_MOUNT_HEALTH_H

enum mount_health {
    MOUNT_ANSWERS,
    MOUNT_DENIED,  /* this user may not look: nothing is known about its server */
    MOUNT_UNKNOWN, /* it could not be asked, or has no server just now */
    MOUNT_HANGS,   /* no answer in time */
    MOUNT_DEAD,    /* its connection has ended. Only such a mount may be removed without a request of its user */
};

/* `error`: 0 or -errno of statfs(2), or of the attempt to start a process that calls it. */
enum mount_health mount_health_of(int error);

#endif
