/* Put mounts up and take them away: by descriptors where we may, else through fusermount3.
 *
 * Everything here can block on a mount whose server does not answer. It is called by the command and by short-lived
 * children of the keeper, never by the keeper or the server themselves. */
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
    bool unchecked; /* no default_permissions: the server's own rights decide. For a mount that only its owner sees */
    uid_t uid;
    gid_t gid;
};

/* May this process call mount(2) here (root, or CAP_SYS_ADMIN in its user namespace)? */
bool attach_privileged(void);

struct attach_mount {
    int device;     /* its /dev/fuse */
    int root;       /* where we are privileged: the mount, which nobody sees before it is put in its place; else -1 */
    unsigned minor; /* of its device number */
};
/* A FUSE file system for `path`. On failure `why` says what and why. */
int attach_mount(const char *path, const struct attach_options *options, struct attach_mount *made, struct str *why);
/* These four are for the privileged. Paths are resolved ones: a symlink in one is refused (-ENOTDIR). */
int attach_put(int root, const char *path, struct str *why);
/* The control mount on the directory .dealfs of the data mount. */
int attach_nest(int control, int data, struct str *why);
/* A descriptor of the mount on a path, to be put elsewhere or there again. */
int attach_copy(const char *path, unsigned minor, struct str *why);
/* A descriptor of the root of what is mounted on a path; asks its server nothing. */
int attach_open(const char *path, unsigned minor, struct str *why);
/* `lazy`: now, even if processes are inside. `minor`: what must be mounted there; 0: anything. -EBUSY, -EINVAL (no such
 * mount there). Never follows a mount that hangs. */
int attach_unmount(const char *path, unsigned minor, bool lazy, struct str *why);

/* A tmpfs of its own that no path leads to and that goes when the last descriptor of it is closed. */
int attach_private_tmpfs(uint64_t bytes, uid_t uid, gid_t gid, int *fd);

/* What stands in /proc/self/mountinfo: the topmost mount on exactly this path. */
struct attach_mount_info {
    char type[64];
    char *source; /* malloc'd; the caller of attach_find frees it */
    unsigned major, minor;
    uid_t uid; /* whose FUSE mount it is; of others (uid_t)-1 */
    gid_t gid;
};
int attach_find(const char *path, struct attach_mount_info *info); /* 0 or -ENOENT */
/* Which directory this is, in words that stay the same when its file system is mounted again, and that another user
 * cannot bring about: type, whose mount it is, source, the mount's root, inode. -ENOENT: of no mount in this namespace.
 */
int attach_identify(int fd, struct str *out);
/* All of a type (NULL: of any), from a table read beforehand, so that `each` may change it. Non-zero ends it. */
int attach_each(const char *type, int (*each)(void *user, const char *path, const struct attach_mount_info *info),
                void *user);
/* In such tables space, tab, newline and backslash stand as \ooo: in place. */
void attach_unescape(char *text);
/* Is a path on a file system that other machines share? 1, 0 or -errno. */
int attach_on_network(const char *path);
/* End a connection whose server is gone or hangs: /sys/fs/fuse/connections/MINOR/abort. */
int attach_abort(unsigned minor);

#endif
