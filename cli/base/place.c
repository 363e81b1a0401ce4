/* Finds, resolves and compares source and mountpoint. */
#include "cli/base/place.h"

#include "cli/base/guard.h"
#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

const char *place_host(void)
{
    static char name[HOST_NAME_MAX + 1];
    if (!name[0] && (gethostname(name, sizeof name) < 0 || !name[0]))
        strcpy(name, "localhost");
    name[HOST_NAME_MAX] = '\0';
    return name;
}

void place_expand(const char *text, unsigned node, struct str *out)
{
    for (; *text; text++) {
        char next = text[0] == '%' ? text[1] : '\0';
        if (next == 'r')
            str_addf(out, "%u", node);
        else if (next == 'h')
            str_adds(out, place_host());
        else if (next == '%')
            str_adds(out, "%");
        else
            str_add(out, text, 1);
        if (next == 'r' || next == 'h' || next == '%')
            text++;
    }
}

void place_escape(const char *path, bool in_list, struct str *out)
{
    for (; *path; path++) {
        str_adds(out, *path == '%' ? "%" : in_list && strchr(",\\", *path) ? "\\" : "");
        str_add(out, path, 1);
    }
}

/* With slashes at the end, the kernel would look into what is mounted there. */
static void trim_slashes(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
}

static void add_here(const char *text, struct str *out)
{
    char here[PATH_MAX];
    if (text[0] != '/')
        str_addf(out, "%s/", getcwd(here, sizeof here) && strcmp(here, "/") != 0 ? here : "");
}

static char *steal_trimmed(struct str *s)
{
    char *path = s->failed ? NULL : str_steal(s);
    if (path)
        trim_slashes(path);
    return path;
}

char *place_absolute(const char *text, unsigned node)
{
    CLEANUP_STR struct str out = STR_INIT;
    add_here(text, &out);
    place_expand(text, node, &out);
    return steal_trimmed(&out);
}

char *place_as_given(const char *text)
{
    CLEANUP_STR struct str out = STR_INIT;
    add_here(text, &out);
    str_adds(&out, text);
    return steal_trimmed(&out);
}

char *place_plain(const char *path)
{
    CLEANUP_STR struct str plain = STR_INIT;
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && strncmp(path, "..", 2) == 0)
            while (plain.length > 0 && plain.data[--plain.length] != '/')
                ;
        else if (n > 0 && !(n == 1 && path[0] == '.')) {
            str_adds(&plain, "/");
            str_add(&plain, path, n);
        }
        path += n + (path[n] == '/');
    }
    if (plain.length == 0)
        str_adds(&plain, "/");
    else
        plain.data[plain.length] = '\0';
    return plain.failed ? NULL : str_steal(&plain);
}

void place_name(struct str *why, const char *what, const char *path)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, path, strlen(path));
    str_adds(why, ": ");
}

int place_fail(struct str *why, const char *what, const char *path, const char *reason, int error)
{
    place_name(why, what, path);
    return str_fail(why, error, "%s", reason);
}

int place_error(struct str *why, const char *what, const char *path, int error)
{
    return error ? place_fail(why, what, path, strerror(-error), error) : 0;
}

int place_open_special(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
        return -ENOENT;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

char *place_join(const char *folder, const char *name)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    return path.failed ? NULL : str_steal(&path);
}

int place_in_path(const char *name, char *path, size_t n)
{
    const char *list = getenv("PATH");
    struct stat st;
    for (const char *next = list ? list : "/usr/bin:/bin"; *next;) {
        size_t length = strcspn(next, ":");
        snprintf(path, n, "%.*s/%s", (int)length, next, name);
        if (length > 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return 0;
        next += length + (next[length] == ':');
    }
    return -ENOENT;
}

int place_source(const char *given, char **path, int *fd, struct str *why)
{
    CLEANUP_FREE char *real = realpath(given, NULL);
    if (!real && strstr(given, "://"))
        return place_fail(why, "source", given,
                          "not a directory. Mount the bucket or server with another program (rclone mount, mount-s3, "
                          "s3fs), and use that directory with -o identity=mtime",
                          -EINVAL);
    if (!real)
        return place_error(why, "source", given, -errno);
    CLEANUP_CLOSE int opened = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0 || faccessat(AT_FDCWD, real, X_OK, AT_EACCESS) < 0)
        return place_error(why, "source", real, -errno);
    *path = steal_pointer(real);
    *fd = steal_fd(opened);
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* realpath calls readlink for every component; for the last one, that would access the mount's root. So only its
 * parents are resolved, and the last component only if it is a symlink or `.` or `..`. */
static int resolve_parents(void *user, struct str *out)
{
    char *path = user, real[PATH_MAX], link[2];
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || is_dots(name) || readlink(path, link, sizeof link) >= 0) {
        if (!realpath(path, real))
            return -errno;
        str_adds(out, real);
        return 0;
    }
    if (slash)
        *slash = '\0';
    if (!realpath(!slash ? "." : slash == path ? "/" : path, real))
        return -errno;
    str_addf(out, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    return 0;
}

int place_mountpoint(const char *given, char **path, struct str *why)
{
    CLEANUP_FREE char *copy = strdup(given);
    CLEANUP_STR struct str real = STR_INIT;
    if (!copy)
        return -ENOMEM;
    if (!*given)
        return place_fail(why, "mountpoint", "", "is empty", -EINVAL);
    trim_slashes(copy);
    int error = guard_run(resolve_parents, copy, PLACE_SECONDS, &real);
    if (error == -ETIMEDOUT)
        return place_fail(why, "mountpoint", given, "a file system on its path does not answer", error);
    if (error)
        return place_error(why, "mountpoint", given, error);
    *path = str_steal(&real);
    return *path ? 0 : -ENOMEM;
}

static int look_into(void *user, struct str *out)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(user);
    struct dirent *e;
    if (!d)
        return -errno;
    while ((e = readdir(d)))
        if (!is_dots(e->d_name)) {
            str_adds(out, "x");
            break;
        }
    return 0;
}

static int look_stat(void *user, struct str *out)
{
    struct stat st;
    (void)out;
    if (stat(user, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int place_look(const char *mountpoint, bool *empty, struct str *why)
{
    CLEANUP_STR struct str entries = STR_INIT;
    int error = guard_run(look_into, (char *)mountpoint, PLACE_SECONDS, &entries);
    /* a directory that may not be listed can still be a mountpoint */
    if (error == -EACCES)
        error = guard_run(look_stat, (char *)mountpoint, PLACE_SECONDS, &entries);
    *empty = entries.length == 0;
    if (error == -ETIMEDOUT)
        return place_fail(why, "mountpoint", mountpoint, "the file system mounted there does not answer", error);
    return place_error(why, "mountpoint", mountpoint, error);
}

bool place_lies_in(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    if (strcmp(outer, "/") == 0)
        return true;
    return strncmp(inner, outer, n) == 0 && (inner[n] == '/' || inner[n] == '\0');
}

int place_apart(const char *source, const char *mountpoint, struct str *why)
{
    struct stat a, b;
    if (strcmp(source, mountpoint) == 0 ||
        (stat(source, &a) == 0 && stat(mountpoint, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino))
        return place_fail(why, "mountpoint", mountpoint, "is the source itself", -EINVAL);
    if (place_lies_in(mountpoint, source))
        return place_fail(why, "mountpoint", mountpoint, "lies inside the source", -EINVAL);
    if (place_lies_in(source, mountpoint))
        return place_fail(why, "mountpoint", mountpoint, "has the source inside it, which the mount would hide",
                          -EINVAL);
    return 0;
}
