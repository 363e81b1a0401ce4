/* /proc shows the paths of what a process has open: they are compared by name alone. */
#include "cli/users.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { SHOWN = 5, MAPS_MOST = 16 << 20 };

static bool lies_in(const char *path, const char *mountpoint)
{
    size_t n = strlen(mountpoint);

    return strncmp(path, mountpoint, n) == 0 && (path[n] == '/' || path[n] == '\0' || path[n] == ' ');
}

static bool link_lies_in(int dir, const char *name, const char *mountpoint)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);

    if (n <= 0)
        return false;
    target[n] = '\0';
    return lies_in(target, mountpoint);
}

static bool has_open(int process, const char *mountpoint)
{
    CLEANUP_CLOSE int fds = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSEDIR DIR *d = fds >= 0 ? fdopendir(fds) : NULL;
    struct dirent *e;

    if (!d)
        return false;
    steal_fd(fds);
    while ((e = readdir(d)))
        if (isdigit((unsigned char)e->d_name[0]) && link_lies_in(dirfd(d), e->d_name, mountpoint))
            return true;
    return false;
}

static bool has_mapped(int process, const char *mountpoint)
{
    CLEANUP_STR struct str maps = STR_INIT;

    if (file_read(process, "maps", MAPS_MOST, &maps) || maps.length == 0)
        return false;
    for (char *rest = maps.data, *line; (line = strsep(&rest, "\n"));) {
        const char *path = strchr(line, '/');
        if (path && lies_in(path, mountpoint))
            return true;
    }
    return false;
}

static bool works_in(int process, const char *mountpoint)
{
    return link_lies_in(process, "cwd", mountpoint) || link_lies_in(process, "root", mountpoint) ||
           link_lies_in(process, "exe", mountpoint) || has_open(process, mountpoint) || has_mapped(process, mountpoint);
}

static void add_name(struct str *names, int process, const char *pid)
{
    CLEANUP_STR struct str comm = STR_INIT;

    if (file_read(process, "comm", 64, &comm) || comm.length == 0)
        return;
    str_adds(names, names->length ? ", " : "");
    str_add_printable(names, comm.data, comm.length - 1);
    str_addf(names, " (%s)", pid);
}

/* Does its mount namespace have the device? Ours has not, any more. */
static bool has_mounted(int process, const char *device)
{
    CLEANUP_STR struct str mounts = STR_INIT;

    return file_read(process, "mountinfo", MAPS_MOST, &mounts) == 0 && mounts.length > 0 && strstr(mounts.data, device);
}

static int find(bool (*matches)(int process, const char *what), const char *what, struct str *names)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    int found = 0;

    while (d && (e = readdir(d))) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        CLEANUP_CLOSE int process = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process < 0 || atoi(e->d_name) == getpid() || !matches(process, what))
            continue;
        if (++found <= SHOWN)
            add_name(names, process, e->d_name);
    }
    if (found > SHOWN)
        str_addf(names, " and %d more", found - SHOWN);
    return found;
}

int users_of_mount(const char *mountpoint, struct str *names)
{
    return find(works_in, mountpoint, names);
}

int users_of_device(unsigned major, unsigned minor, struct str *names)
{
    char device[32];

    snprintf(device, sizeof device, " %u:%u ", major, minor);
    return find(has_mounted, device, names);
}
