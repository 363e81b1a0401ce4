/* Each component is looked up relative to a descriptor of its directory, because other users may rename directories
 * meanwhile. */
#include "cli/base/way.h"

#include "cli/base/guard.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { WALKS_MOST = 256, WALK_AGAIN = 1 };

/* In a user namespace, the root of the parent namespace has the id of nobody. "/" belongs to that user. */
static bool is_of_root(uid_t uid)
{
    struct stat top;
    return uid == 0 || (stat("/", &top) == 0 && uid == top.st_uid);
}

static int refuse_link(const char *link, uid_t uid, struct str *out)
{
    str_adds(out, "root does not follow the symlink ");
    str_add_printable(out, link, strlen(link));
    str_addf(out, " of user %u: give the path without the symlink", (unsigned)uid);
    return -ELOOP;
}

/* Joins `path` up to `name`, the link's target, and `rest`. */
static int put_target(char path[PATH_MAX], const char *name, const char *target, const char *rest)
{
    char whole[PATH_MAX];
    int before = target[0] == '/' ? 0 : (int)(name - path);
    int n = snprintf(whole, sizeof whole, "%.*s%s/%s", before, path, target, rest);
    if (n < 0 || n >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(path, whole);
    return WALK_AGAIN;
}

/* `fd` is of the last component of `path`. 0: it is not a link. */
static int follow_link(char path[PATH_MAX], const char *name, const char *rest, int fd, struct str *out)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
    if (n < 0)
        return 0;
    target[n] = '\0';
    if (fstat(fd, &st) < 0)
        return -errno;
    return is_of_root(st.st_uid) ? put_target(path, name, target, rest) : refuse_link(path, st.st_uid, out);
}

/* Removes NAME/..; NAME is not a link. */
static int drop_name(const char *path, char *name, const char *rest)
{
    if (name > path + 1)
        for (name--; name[-1] != '/'; name--)
            ;
    memmove(name, rest, strlen(rest) + 1);
    return WALK_AGAIN;
}

static bool is_name(const char *name, size_t n, const char *dots)
{
    return n == strlen(dots) && memcmp(name, dots, n) == 0;
}

/* 0: no component is a link; WALK_AGAIN: the path has changed. */
static int walk_path(char path[PATH_MAX], struct str *out)
{
    CLEANUP_CLOSE int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (char *name = path + 1; *name;) {
        char *end = strchrnul(name, '/'), *rest = end + (*end == '/');
        size_t n = (size_t)(end - name);
        if (n == 0 || is_name(name, n, ".")) {
            memmove(name, rest, strlen(rest) + 1);
            continue;
        }
        if (is_name(name, n, ".."))
            return drop_name(path, name, rest);
        *end = '\0';
        int next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return *rest ? -errno : 0;
        close(at);
        at = next;
        int error = follow_link(path, name, rest, next, out);
        if (error)
            return error;
        if (*rest)
            *end = '/';
        name = rest;
    }
    return 0;
}

static int resolve_path(void *user, struct str *out)
{
    char path[PATH_MAX];
    int error = snprintf(path, sizeof path, "%s", (const char *)user) < PATH_MAX ? WALK_AGAIN : -ENAMETOOLONG;
    for (int i = 0; error == WALK_AGAIN && i < WALKS_MOST; i++)
        error = walk_path(path, out);
    if (error)
        return error == WALK_AGAIN ? -ELOOP : error;
    size_t n = strlen(path);
    str_add(out, path, n > 1 && path[n - 1] == '/' ? n - 1 : n);
    return 0;
}

int way_resolve(const char *path, char **resolved, struct str *why)
{
    CLEANUP_STR struct str out = STR_INIT;
    int error = guard_run(resolve_path, (char *)path, PLACE_SECONDS, &out);
    if (error == -ETIMEDOUT)
        return place_fail(why, "mountpoint", path, "a file system on its path does not answer", error);
    if (error)
        return place_fail(why, "mountpoint", path, out.length ? out.data : strerror(-error), error);
    *resolved = str_steal(&out);
    return *resolved ? 0 : -ENOMEM;
}

bool way_is_roots_alone(const char *directory)
{
    CLEANUP_FREE char *path = *directory == '/' ? strdup(directory) : NULL;
    struct stat st;
    for (char *end = path; end;) {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (lstat(path, &st) < 0 || st.st_uid != 0 || !S_ISDIR(st.st_mode) ||
            ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
            return false;
        if (end)
            *end = '/';
    }
    return path;
}
