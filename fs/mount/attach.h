/* Put mounts up and take them away: with mount(2) where we may, else through fusermount3.
 *
 * Everything here can block on a mount whose server does not answer. It is called by the command and by short-lived
 * children of the keeper, never by the keeper or the server themselves. */
#ifndef FS_MOUNT_ATTACH_H
#define FS_MOUNT_ATTACH_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_options {
    const char *subtype; /* "dealfs" or "dealfs-ctl" */
    const char *source;  /* shown in /proc/mounts */
    bool read_only, allow_other, no_exec;
    bool unchecked; /* no default_permissions: the server's own rights decide. For a mount that only its owner sees */
    uid_t uid;
    gid_t gid;
};

/* May this process call mount(2) here (root, or CAP_SYS_ADMIN in its user namespace)? */
bool attach_privileged(void);

/* Mount a FUSE file system on `path`; `*fd` is its /dev/fuse. On failure `why` says what and why. */
int attach_mount(const char *path, const struct attach_options *options, int *fd, struct str *why);
/* Make the control mount appear on MOUNTPOINT/.dealfs as well, and no longer at its first place. Privileged only. */
int attach_nest(const char *control, const char *mountpoint, struct str *why);
/* `lazy`: now, whoever is inside. -EBUSY, -EINVAL (no mount there). Never follows a mount that hangs. */
int attach_unmount(const char *path, bool lazy, struct str *why);

/* A tmpfs of its own that no path leads to and that goes when the last descriptor of it is closed. */
int attach_private_tmpfs(uint64_t bytes, uid_t uid, gid_t gid, int *fd);

/* What stands in /proc/self/mountinfo: the topmost mount on exactly this path. */
struct attach_mount_info {
    char type[64];
    char *source; /* malloc'd; the caller of attach_find frees it */
    unsigned major, minor;
    uid_t uid; /* whose FUSE mount it is; of others (uid_t)-1 */
};
int attach_find(const char *path, struct attach_mount_info *info); /* 0 or -ENOENT */
/* All of a type (NULL: of any), from a table read beforehand, so that `each` may change it. Non-zero ends it. */
int attach_each(const char *type, int (*each)(void *user, const char *path, const struct attach_mount_info *info),
                void *user);
/* End a connection whose server is gone or hangs: /sys/fs/fuse/connections/MINOR/abort. */
int attach_abort(unsigned minor);

#endif
