/* Mounts and unmounts: by descriptors if possible, else through fusermount3.
 *
 * All of this can block on a mount whose server does not answer. The command and short-lived children of the keeper
 * call it, never the keeper or the server themselves. */
#ifndef FS_ATTACH_ATTACH_H
#define FS_ATTACH_ATTACH_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_options {
    const char *subtype; /* "dealfs" or "dealfs-ctl" */
    const char *source;  /* shown in /proc/mounts */
    bool read_only, allow_other, no_exec;
    /* without default_permissions: the server's own rights decide. For a mount that only its owner can access */
    bool unchecked;
    uid_t uid;
    gid_t gid;
};

/* May this process call mount(2) here (root, or CAP_SYS_ADMIN in its user namespace)? */
bool attach_privileged(void);

struct attach_mount {
    int device;     /* its /dev/fuse */
    int root;       /* if privileged: the detached mount; else -1 */
    unsigned minor; /* of its device number */
};
/* Create a FUSE filesystem for `path`. On failure `why` says what failed and why. */
int attach_mount(const char *path, const struct attach_options *options, struct attach_mount *made, struct str *why);
/* These four need privileges. Paths are resolved ones: a symlink in one is an error (-ENOTDIR). */
int attach_put(int root, const char *path, struct str *why);
/* Attach the control mount to the directory .dealfs of the data mount. */
int attach_nest(int control, int data, struct str *why);
/* A descriptor of a copy of the mount on a path, to be attached again, there or elsewhere. */
int attach_copy(const char *path, unsigned minor, struct str *why);
/* A descriptor of the root of the mount on a path; does not contact its server. */
int attach_open(const char *path, unsigned minor, struct str *why);
/* `lazy`: at once, even if processes are inside. `minor`: of the expected mount; 0: any. -EBUSY, -EINVAL (no such mount
 * there). Never blocks on a mount that hangs. */
int attach_unmount(const char *path, unsigned minor, bool lazy, struct str *why);

/* A detached tmpfs, which disappears when its last descriptor is closed. */
int attach_private_tmpfs(uint64_t bytes, uid_t uid, gid_t gid, int *fd);

/* From /proc/self/mountinfo: the topmost mount on exactly this path. */
struct attach_mount_info {
    char type[64];
    char *source; /* malloc'd; the caller of attach_find frees it */
    unsigned major, minor;
    uid_t uid; /* user of a FUSE mount; otherwise (uid_t)-1 */
    gid_t gid;
};
int attach_find(const char *path, struct attach_mount_info *info); /* 0 or -ENOENT */
/* Identifies this directory by a text that stays the same when its filesystem is mounted again, and that another user
 * cannot imitate: type, user of the mount, source, the mount's root, inode. -ENOENT: its mount is not in this
 * namespace. */
int attach_identify(int fd, struct str *out);
/* Calls `each` for all mounts of a type (NULL: any). The table is read before, so `each` may change it. A nonzero
 * result ends the loop. */
int attach_each(const char *type, int (*each)(void *user, const char *path, const struct attach_mount_info *info),
                void *user);
/* In such tables, space, tab, newline and backslash are written \ooo. Decodes in place. */
void attach_unescape(char *text);
/* Is a path on a filesystem that other machines share? 1, 0 or -errno. */
int attach_on_network(const char *path);
/* The connection that has this number now, as a descriptor, or -errno: /sys/fs/fuse/connections/MINOR/abort. The
 * descriptor stays that connection's, even when another mount gets the number. So take it first, then find out whether
 * it is the right one (the mount still has the number, or its /dev/fuse has not ended), then end it. */
int attach_connection(unsigned minor);
/* End a connection whose server is gone or hangs. Does nothing if it has ended. */
int attach_abort(int connection);

#endif
