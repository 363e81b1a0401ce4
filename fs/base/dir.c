/* Our folders: created with their parents, removed with their contents. */
#include "fs/base/file.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static int make_one(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0)
        return 0;
    int error = -errno;
    struct stat st;
    if (error == -EEXIST || error == -EROFS || error == -EACCES || error == -EPERM)
        if (stat(path, &st) == 0)
            return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
    return error;
}

int dir_make(const char *path, mode_t mode)
{
    char buffer[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0)
        return -ENOENT;
    if (n >= sizeof buffer)
        return -ENAMETOOLONG;
    memcpy(buffer, path, n + 1);
    for (char *p = buffer + 1; *p; p++) {
        if (*p != '/' || p[-1] == '/')
            continue;
        *p = '\0';
        int error = make_one(buffer, mode | S_IWUSR | S_IXUSR);
        *p = '/';
        if (error)
            return error;
    }
    return make_one(buffer, mode);
}

/* --- trees --- */

/* Neither unlink nor rmdir touches what is mounted on a name: both fail with EBUSY at once, even if a FUSE mount hangs
 * there. -ENOTEMPTY: a directory that is not empty. */
static int remove_one(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    int error = -errno;
    if (error != -EISDIR && error != -EPERM)
        return error;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR)
        return error;
    return errno == EEXIST ? -ENOTEMPTY : -errno;
}

/* The directories from the top of a tree to the current one, all open. The tree's owner may have nested them deeply, so
 * the walk has a limit and does not recurse. */
struct walk {
    struct walk_level {
        DIR *dir;
        int error; /* the first one below it */
        char name[NAME_MAX + 1];
    } level[DIR_DEEPEST];
    int depth;
    int error;
    int rounds; /* other processes may add entries meanwhile: how often a directory is walked again */
};
#define CLEANUP_WALK __attribute__((cleanup(walk_end)))

static void walk_leave(struct walk *w)
{
    closedir(w->level[--w->depth].dir);
}

static void walk_end(struct walk *w)
{
    KEEP_ERRNO;
    while (w->depth > 0)
        walk_leave(w);
}

static int walk_parent(const struct walk *w, int top)
{
    return w->depth > 1 ? dirfd(w->level[w->depth - 2].dir) : top;
}

/* Relative to the current directory of the walk; at first, to `top`. */
static int walk_enter(struct walk *w, int top, const char *name)
{
    if (w->depth == DIR_DEEPEST)
        return -ENAMETOOLONG;
    CLEANUP_CLOSE int fd = openat(w->depth > 0 ? dirfd(w->level[w->depth - 1].dir) : top, name,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct walk_level *l = &w->level[w->depth];
    if (fd < 0 || !(l->dir = fdopendir(fd)))
        return -errno;
    steal_fd(fd);
    l->error = 0;
    if (w->depth++ > 0) /* at the top it may be a path */
        snprintf(l->name, sizeof l->name, "%s", name);
    return 0;
}

static struct dirent *walk_next(struct walk *w)
{
    struct dirent *e;
    do
        e = readdir(w->level[w->depth - 1].dir);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e;
}

/* When the whole directory was walked. */
static void remove_emptied(struct walk *w, int dir, const char *path)
{
    struct walk_level *l = &w->level[w->depth - 1];
    int error = l->error ? l->error : remove_one(walk_parent(w, dir), w->depth > 1 ? l->name : path);
    if (error == -ENOTEMPTY && !l->error && w->rounds-- > 0) {
        rewinddir(l->dir);
        return;
    }
    walk_leave(w);
    int *above = w->depth > 0 ? &w->level[w->depth - 1].error : &w->error;
    *above = *above ? *above : error;
}

int dir_remove_tree(int dir, const char *path)
{
    enum { ROUNDS = 10 };
    CLEANUP_WALK struct walk w = {.depth = 0, .rounds = ROUNDS};
    int error = remove_one(dir, path);
    if (error == -ENOTEMPTY)
        error = walk_enter(&w, dir, path);
    if (error)
        return error;
    while (w.depth > 0) {
        struct walk_level *l = &w.level[w.depth - 1];
        struct dirent *e = walk_next(&w);
        if (!e) {
            remove_emptied(&w, dir, path);
            continue;
        }
        error = remove_one(dirfd(l->dir), e->d_name);
        if (error == -ENOTEMPTY)
            error = walk_enter(&w, dir, e->d_name);
        l->error = l->error ? l->error : error;
    }
    return w.error;
}

bool dir_has_mount(int dir, const char *path)
{
    struct statx st;
    if (statx(dir, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0)
        return st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    if (errno != EACCES)
        return false;
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    return parent && faccessat(dir, parent, X_OK, AT_EACCESS) == 0;
}

/* Size of an entry, without contacting a server that may hang: mounts are skipped. */
static uint64_t entry_bytes(int dir, const char *name, bool *enter)
{
    struct statx st;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    *enter = false;
    if (statx(dir, name, flags, STATX_TYPE | STATX_BLOCKS, &st) || st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return 0;
    *enter = S_ISDIR(st.stx_mode);
    return S_ISREG(st.stx_mode) ? st.stx_blocks * 512 : 0;
}

uint64_t dir_bytes(int dir, const char *path)
{
    CLEANUP_WALK struct walk w = {.depth = 0};
    uint64_t bytes = 0;
    bool enter;
    walk_enter(&w, dir, path);
    while (w.depth > 0) {
        struct dirent *e = walk_next(&w);
        if (!e) {
            walk_leave(&w);
            continue;
        }
        bytes += entry_bytes(dirfd(w.level[w.depth - 1].dir), e->d_name, &enter);
        if (enter)
            walk_enter(&w, dir, e->d_name);
    }
    return bytes;
}
