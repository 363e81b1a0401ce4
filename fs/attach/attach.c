/* Mounts by descriptors if this process may mount, else through fusermount3.
 *
 * The owner of a mount may own folders on its path and in its contents, so no name from the owner is followed. */
#include "fs/attach/attach.h"

#include "fs/base/cleanup.h"
#include "fs/attach/attach-inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool has_sys_admin(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    return syscall(SYS_capget, &header, data) == 0 && data[0].effective & 1u << CAP_SYS_ADMIN;
}

/* The capability counts only if our mount namespace belongs to our user namespace. */
static bool owns_mount_namespace(void)
{
    CLEANUP_CLOSE int mnt = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CLEANUP_CLOSE int user = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    struct stat ours, owner;
    if (mnt < 0 || user < 0 || fstat(user, &ours) < 0)
        return true;
    CLEANUP_CLOSE int of_mnt = ioctl(mnt, NS_GET_USERNS);
    if (of_mnt < 0)
        return errno != EPERM; /* EPERM: it belongs to a user namespace above ours */
    return fstat(of_mnt, &owner) == 0 && owner.st_ino == ours.st_ino && owner.st_dev == ours.st_dev;
}

bool attach_privileged(void)
{
    return has_sys_admin() && owns_mount_namespace();
}

static int attach_fail(struct str *why, const char *what, const char *path, int error, const char *hint)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, path, strlen(path));
    return str_fail(why, error, ": %s%s", strerror(-error), hint);
}

static const char *device_hint(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENODEV:
    case -ENXIO:
        return " (is the fuse module loaded? In a container: is the device passed in?)";
    case -EACCES:
    case -EPERM:
        return " (its mode or the container's device rules deny this user access)";
    }
    return "";
}

/* --- new mounts --- */

static int set_text(int fs, const char *key, const char *text)
{
    return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

static int set_number(int fs, const char *key, const char *format, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, format, number);
    return set_text(fs, key, text);
}

static int set_flag(int fs, const char *key, bool wanted)
{
    return wanted ? fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0) : 0;
}

/* A descriptor of the new mount's root, or -1. */
static int make_fuse(const struct attach_options *o, int device)
{
    CLEANUP_CLOSE int fs = fsopen("fuse", FSOPEN_CLOEXEC);
    unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (fs < 0 || set_text(fs, "source", o->source) < 0 || set_text(fs, "subtype", o->subtype) < 0 ||
        set_number(fs, "fd", "%" PRIu64, (uint64_t)device) < 0 || set_number(fs, "rootmode", "%" PRIo64, S_IFDIR) < 0 ||
        set_number(fs, "user_id", "%" PRIu64, o->uid) < 0 || set_number(fs, "group_id", "%" PRIu64, o->gid) < 0 ||
        set_flag(fs, "default_permissions", !o->unchecked) < 0 || set_flag(fs, "allow_other", o->allow_other) < 0 ||
        set_flag(fs, "ro", o->read_only) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    attributes |= o->read_only ? MOUNT_ATTR_RDONLY : 0;
    attributes |= o->no_exec ? MOUNT_ATTR_NOEXEC : 0;
    return fsmount(fs, FSMOUNT_CLOEXEC, attributes);
}

/* Does not contact a FUSE server, and needs no permission to enter the mount. */
static int minor_of(int dir, const char *name, unsigned *minor)
{
    struct statx st;
    if (statx(dir, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &st) < 0)
        return -errno;
    *minor = st.stx_dev_minor;
    return 0;
}

static int mount_detached(const char *path, const struct attach_options *options, struct attach_mount *made,
                          struct str *why)
{
    CLEANUP_CLOSE int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return attach_fail(why, "open", "/dev/fuse", -errno, device_hint(-errno));
    CLEANUP_CLOSE int root = make_fuse(options, device);
    int error = root < 0 ? -errno : minor_of(root, "", &made->minor);
    if (error)
        return attach_fail(why, "mount", path, error, "");
    made->device = steal_fd(device);
    made->root = steal_fd(root);
    return 0;
}

int attach_mount(const char *path, const struct attach_options *options, struct attach_mount *made, struct str *why)
{
    struct attach_mount_info info;
    *made = (struct attach_mount){.device = -1, .root = -1};
    if (attach_privileged())
        return mount_detached(path, options, made, why);
    int error = fusermount_mount(path, options, &made->device, why);
    if (!error && attach_find(path, &info) == 0) {
        made->minor = info.minor;
        free(info.source);
    }
    return error;
}

/* --- existing mounts --- */

/* The path was resolved before, but the owner of a folder in it may have put a symlink there since. */
static int open_plain(int dir, const char *path)
{
    enum { FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    CLEANUP_FREE char *copy = strdup(path);
    char *rest = copy, *name;
    if (!copy)
        return -ENOMEM;
    CLEANUP_CLOSE int at = openat(dir, path[0] == '/' ? "/" : ".", FLAGS);
    while (at >= 0 && (name = strsep(&rest, "/"))) {
        int next = *name ? openat(at, name, FLAGS) : -1;
        if (*name && next < 0)
            return -errno;
        if (*name) {
            close(at);
            at = next;
        }
    }
    return at < 0 ? -errno : steal_fd(at);
}

static int put_on(int root, int dir, const char *path, const char *shown, struct str *why)
{
    CLEANUP_CLOSE int place = open_plain(dir, path);
    if (place < 0)
        return attach_fail(why, "mount on", shown, place, place == -ENOTDIR ? " (or its path contains a symlink)" : "");
    if (move_mount(root, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return attach_fail(why, "mount on", shown, -errno, "");
    return 0;
}

int attach_put(int root, const char *path, struct str *why)
{
    return put_on(root, AT_FDCWD, path, path, why);
}

int attach_nest(int control, int data, struct str *why)
{
    return put_on(control, data, ".dealfs", "its own .dealfs", why);
}

/* Mounts are unmounted and copied by their name within a descriptor of the parent folder: this one. */
static int open_parent(const char *path, unsigned minor, const char **name)
{
    CLEANUP_FREE char *copy = strdup(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    unsigned found;
    if (!slash)
        return copy ? -EINVAL : -ENOMEM;
    *name = path + (slash - copy) + 1;
    slash[slash == copy] = '\0';
    CLEANUP_CLOSE int parent = open_plain(AT_FDCWD, copy);
    int error = parent < 0 ? parent : minor_of(parent, *name, &found);
    if (!error && minor && minor != found)
        error = -EINVAL;
    return error ? error : steal_fd(parent);
}

int attach_unmount(const char *path, unsigned minor, bool lazy, struct str *why)
{
    CLEANUP_STR struct str place = STR_INIT;
    const char *name;
    if (!attach_privileged())
        return fusermount_unmount(path, lazy, why);
    CLEANUP_CLOSE int parent = open_parent(path, minor, &name);
    int error = parent < 0 ? parent : 0;
    if (!error) {
        str_addf(&place, "/proc/self/fd/%d/%s", parent, name);
        int flags = UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);
        error = place.failed ? -ENOMEM : umount2(place.data, flags) < 0 ? -errno : 0;
    }
    return error ? attach_fail(why, "unmount", path, error, error == -EBUSY ? " (a process uses it)" : "") : 0;
}

int attach_copy(const char *path, unsigned minor, struct str *why)
{
    const char *name;
    CLEANUP_CLOSE int parent = open_parent(path, minor, &name);
    if (parent < 0)
        return attach_fail(why, "look at", path, parent, "");
    int copy = open_tree(parent, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    return copy < 0 ? attach_fail(why, "copy the mount on", path, -errno, "") : copy;
}

int attach_open(const char *path, unsigned minor, struct str *why)
{
    unsigned found;
    CLEANUP_CLOSE int fd = open_plain(AT_FDCWD, path);
    int error = fd < 0 ? fd : minor_of(fd, "", &found);
    if (!error && minor && minor != found)
        error = -EINVAL;
    return error ? attach_fail(why, "open", path, error, "") : steal_fd(fd);
}

/* --- a tmpfs --- */

int attach_private_tmpfs(uint64_t bytes, uid_t uid, gid_t gid, int *fd)
{
    CLEANUP_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -errno;
    /* Larger pages, but never beyond a file's end; writes use them since Linux 6.14. Kernels without this option
     * fail. */
    (void)!fsconfig(fs, FSCONFIG_SET_STRING, "huge", "within_size", 0);
    if (fsconfig(fs, FSCONFIG_SET_STRING, "source", "dealfs-ram", 0) < 0 ||
        set_number(fs, "size", "%" PRIu64, bytes) < 0 || set_number(fs, "mode", "%" PRIo64, 0700) < 0 ||
        set_number(fs, "uid", "%" PRIu64, uid) < 0 || set_number(fs, "gid", "%" PRIu64, gid) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int root = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (root < 0)
        return -errno;
    *fd = root;
    return 0;
}

/* A detached mount of /sys/fs/fuse/connections, for root. */
static int open_connections(void)
{
    CLEANUP_CLOSE int fs = fsopen("fusectl", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(fs, FSMOUNT_CLOEXEC, 0);
}

int attach_connection(unsigned minor)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", minor);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CLEANUP_CLOSE int connections = fd < 0 && errno == ENOENT ? open_connections() : -1;
    if (connections >= 0)
        fd = openat(connections, strstr(path, "/connections/") + strlen("/connections/"), O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int attach_abort(int connection)
{
    return write(connection, "1", 1) == 1 ? 0 : -errno;
}
