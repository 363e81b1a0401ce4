/* /proc shows the paths of a process's open files: they are compared by name only. */
#include "cli/live/users.h"

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
    if (strncmp(path, mountpoint, n) != 0)
        return false;
    return path[n] == '/' || path[n] == '\0' || strcmp(path + n, " (deleted)") == 0;
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

static bool works_in(int process, const void *what)
{
    const char *mountpoint = what;
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

/* As it is written in a mount table. */
struct mounted {
    char device[32];
    struct str source;
};

/* Does its mount namespace have the mount? Ours no longer has it. If no namespace has it, the device number may soon
 * belong to another filesystem, even to another dealfs mount. */
static bool has_mounted(int process, const void *what)
{
    const struct mounted *m = what;
    CLEANUP_STR struct str mounts = STR_INIT;
    if (file_read(process, "mountinfo", MAPS_MOST, &mounts) || mounts.length == 0)
        return false;
    for (char *rest = mounts.data, *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, m->device) && strstr(line, m->source.data))
            return true;
    return false;
}

static int find_processes(bool (*matches)(int process, const void *what), const void *what, struct str *names)
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
    return find_processes(works_in, mountpoint, names);
}

int users_of_device(unsigned major, unsigned minor, const char *source, struct str *names)
{
    struct mounted m = {.source = STR_INIT};
    snprintf(m.device, sizeof m.device, " %u:%u ", major, minor);
    str_adds(&m.source, " - fuse.dealfs ");
    for (const char *c = source; *c; c++)
        if (strchr(" \t\n\\#", *c))
            str_addf(&m.source, "\\%03o", (unsigned char)*c);
        else
            str_add(&m.source, c, 1);
    str_adds(&m.source, " ");
    int found = m.source.failed ? 0 : find_processes(has_mounted, &m, names);
    str_fini(&m.source);
    return found;
}
