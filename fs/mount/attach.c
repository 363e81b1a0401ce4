/* Mounts with mount(2) where this process may, else through fusermount3. */
#include "fs/mount/attach.h"

#include "fs/base/cleanup.h"
#include "fs/mount/fusermount.h"

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

static int fail(struct str *why, const char *what, const char *path, int error, const char *hint)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, path, strlen(path));
    str_addf(why, ": %s%s", strerror(-error), hint);
    return error;
}

static const char *device_hint(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENODEV:
    case -ENXIO:
        return " (is the fuse module loaded, and in a container the device passed in?)";
    case -EACCES:
    case -EPERM:
        return " (its mode, or the container's device rules, keep this user out)";
    }
    return "";
}

static int mount_directly(const char *path, const struct attach_options *options, int *fd, struct str *why)
{
    CLEANUP_CLOSE int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    unsigned long flags = MS_NOSUID | MS_NODEV;
    char type[64], data[160];

    if (device < 0)
        return fail(why, "open", "/dev/fuse", -errno, device_hint(-errno));
    flags |= options->read_only ? MS_RDONLY : 0;
    flags |= options->no_exec ? MS_NOEXEC : 0;
    snprintf(type, sizeof type, "fuse.%s", options->subtype);
    snprintf(data, sizeof data, "fd=%d,rootmode=40000,user_id=%" PRIu32 ",group_id=%" PRIu32 "%s%s", device, options->uid,
             options->gid, options->unchecked ? "" : ",default_permissions", options->allow_other ? ",allow_other" : "");
    if (mount(options->source, path, type, flags, data) < 0)
        return fail(why, "mount", path, -errno, "");
    *fd = steal_fd(device);
    return 0;
}

int attach_mount(const char *path, const struct attach_options *options, int *fd, struct str *why)
{
    if (attach_privileged())
        return mount_directly(path, options, fd, why);
    return fusermount_mount(path, options, fd, why);
}

int attach_nest(const char *control, const char *mountpoint, struct str *why)
{
    CLEANUP_STR struct str place = STR_INIT;

    str_addf(&place, "%s/.dealfs", mountpoint);
    if (place.failed)
        return -ENOMEM;
    if (mount(control, place.data, NULL, MS_BIND, NULL) < 0)
        return fail(why, "mount the control mount on", place.data, -errno, "");
    if (umount2(control, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return 0;
    int error = fail(why, "unmount", control, -errno, "");
    umount2(place.data, MNT_DETACH | UMOUNT_NOFOLLOW);
    return error;
}

int attach_unmount(const char *path, bool lazy, struct str *why)
{
    if (!attach_privileged())
        return fusermount_unmount(path, lazy, why);
    if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
        return 0;
    return fail(why, "unmount", path, -errno, errno == EBUSY ? " (somebody works in it)" : "");
}

static int set_number(int fs, const char *key, const char *format, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, format, number);
    return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

int attach_private_tmpfs(uint64_t bytes, uid_t uid, gid_t gid, int *fd)
{
    CLEANUP_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
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

int attach_abort(unsigned minor)
{
    char path[64];

    snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", minor);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1", 1) != 1)
        return -errno;
    return 0;
}
