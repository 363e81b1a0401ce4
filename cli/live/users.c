/* /proc shows the paths of a process's open files: they are compared by name only. Functions about one process return
 * 1, 0, or -errno if it could not be examined (see process_look_error). */
#include "cli/live/users.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/process.h"

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

static int link_lies_in(int dir, const char *name, const char *mountpoint)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0 && errno == ENAMETOOLONG) /* it is longer than any path below a mountpoint that has a name */
        return 0;
    if (n < 0)
        return process_look_error(-errno);
    target[n] = '\0';
    return lies_in(target, mountpoint);
}

static int has_open(int process, const char *mountpoint)
{
    CLEANUP_CLOSE int fds = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSEDIR DIR *d = fds >= 0 ? fdopendir(fds) : NULL;
    struct dirent *e;
    int found = 0;
    if (!d)
        return process_look_error(-errno);
    steal_fd(fds);
    while (found == 0 && (e = readdir(d)))
        if (isdigit((unsigned char)e->d_name[0]))
            found = link_lies_in(dirfd(d), e->d_name, mountpoint);
    return found;
}

static int has_mapped(int process, const char *mountpoint)
{
    CLEANUP_STR struct str maps = STR_INIT;
    int error = file_read(process, "maps", MAPS_MOST, &maps);
    if (error || maps.length == 0)
        return process_look_error(error);
    for (char *rest = maps.data, *line; (line = strsep(&rest, "\n"));) {
        const char *path = strchr(line, '/');
        if (path && lies_in(path, mountpoint))
            return 1;
    }
    return 0;
}

static int works_in(int process, const void *what)
{
    static const char *const links[] = {"cwd", "root", "exe"};
    const char *mountpoint = what;
    int found = 0;
    for (size_t i = 0; found == 0 && i < sizeof links / sizeof *links; i++)
        found = link_lies_in(process, links[i], mountpoint);
    if (found == 0)
        found = has_open(process, mountpoint);
    return found ? found : has_mapped(process, mountpoint);
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
static int has_mounted(int process, const void *what)
{
    const struct mounted *m = what;
    CLEANUP_STR struct str mounts = STR_INIT;
    int error = file_read(process, "mountinfo", MAPS_MOST, &mounts);
    if (error || mounts.length == 0)
        return process_look_error(error);
    for (char *rest = mounts.data, *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, m->device) && strstr(line, m->source.data))
            return 1;
    return 0;
}

/* If one matches, it does not matter that another could not be examined. */
static int find_processes(int (*matches)(int process, const void *what), const void *what, struct str *names)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    int found = 0, error = d ? 0 : -errno;
    while (d && (e = readdir(d))) {
        if (!isdigit((unsigned char)e->d_name[0]) || atoi(e->d_name) == getpid())
            continue;
        CLEANUP_CLOSE int process = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int match = process < 0 ? process_look_error(-errno) : matches(process, what);
        if (match < 0)
            error = match;
        if (match > 0 && ++found <= SHOWN)
            add_name(names, process, e->d_name);
    }
    if (found > SHOWN)
        str_addf(names, " and %d more", found - SHOWN);
    return found ? found : error;
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
    int found = m.source.failed ? -ENOMEM : find_processes(has_mounted, &m, names);
    str_fini(&m.source);
    return found;
}
