/* unshare and setns, with reasons for failures. */
#include "cli/mount/namespace.h"

#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static bool setting_is(const char *path, int value)
{
    CLEANUP_STR struct str text = STR_INIT;
    return file_read(AT_FDCWD, path, 64, &text) == 0 && text.length > 0 && atoi(text.data) == value;
}

static const char *reason_why_not(void)
{
    if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", 0))
        return " (the administrator forbids it: kernel.unprivileged_userns_clone is 0)";
    if (setting_is("/proc/sys/user/max_user_namespaces", 0))
        return " (the administrator forbids it: user.max_user_namespaces is 0)";
    if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1))
        return " (AppArmor forbids it: kernel.apparmor_restrict_unprivileged_userns is 1)";
    return " (inside a container, its seccomp profile may forbid it)";
}

static int fail_namespace(struct str *why, const char *what, int error, const char *hint)
{
    return str_fail(why, error, "%s: %s%s", what, strerror(-error), hint);
}

static int write_text(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

static int map_id(const char *path, unsigned id)
{
    char line[64];
    snprintf(line, sizeof line, "%u %u 1\n", id, id);
    return write_text(path, line);
}

static int make_user_namespace(struct str *why)
{
    const unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return fail_namespace(why, "make a user namespace", -errno, reason_why_not());
    int error = write_text("/proc/self/setgroups", "deny");
    if (!error || error == -ENOENT)
        error = map_id("/proc/self/uid_map", uid);
    if (!error)
        error = map_id("/proc/self/gid_map", gid);
    return error ? fail_namespace(why, "map the user into its namespace", error, reason_why_not()) : 0;
}

int namespace_make(bool *mapped, struct str *why)
{
    *mapped = !attach_privileged();
    int error = 0;
    if (*mapped)
        error = make_user_namespace(why);
    else if (unshare(CLONE_NEWNS) < 0)
        error = fail_namespace(why, "make a mount namespace", -errno, "");
    if (error)
        return error;
    /* our mounts are invisible outside; later mounts of the host (by an automounter, for example) still arrive here */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return fail_namespace(why, "make mounts private", -errno, *mapped ? reason_why_not() : "");
    return 0;
}

static int open_namespace(pid_t pid, const char *name, struct str *why)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : fail_namespace(why, path, -errno, "");
}

static bool is_ours(int fd, const char *name)
{
    struct stat ours, its;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    return fstat(fd, &its) == 0 && stat(path, &ours) == 0 && ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
}

int namespace_enter(pid_t pid, struct str *why)
{
    CLEANUP_FREE char *here = getcwd(NULL, 0);
    CLEANUP_CLOSE int user = open_namespace(pid, "user", why);
    if (user < 0)
        return user;
    CLEANUP_CLOSE int mnt = open_namespace(pid, "mnt", why);
    if (mnt < 0)
        return mnt;
    if (!is_ours(user, "user") && setns(user, CLONE_NEWUSER) < 0)
        return fail_namespace(why, "enter the user namespace", -errno, "");
    if (!is_ours(mnt, "mnt") && setns(mnt, CLONE_NEWNS) < 0)
        return fail_namespace(why, "enter the mount namespace", -errno, "");
    if ((!here || chdir(here) < 0) && chdir("/") < 0)
        return fail_namespace(why, "change to /", -errno, "");
    return 0;
}
