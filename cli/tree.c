/* Reading directory trees. */
#include "cli/tree.h"

#include "fs/base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path is cut where the kernel would refuse it: *path becomes the rest, seen from the descriptor returned, which
 * is `root` itself where nothing was cut. */
static int reach(int root, const char **path)
{
    int at = root;

    while (strlen(*path) >= PATH_MAX) {
        char head[PATH_MAX];
        size_t n = PATH_MAX - 1;
        while (n > 0 && (*path)[n] != '/')
            n--;
        memcpy(head, *path, n);
        head[n] = '\0';
        int next = n > 0 ? openat(at, head, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        int error = n > 0 ? -errno : -ENAMETOOLONG;
        if (at != root)
            close(at);
        if (next < 0)
            return error;
        at = next;
        *path += n + 1;
    }
    return at;
}

static void leave(int at, int root)
{
    int saved = errno;

    if (at != root)
        close(at);
    errno = saved;
}

int tree_open(int root, const char *path, int flags)
{
    int at = reach(root, &path);

    if (at < 0)
        return at;
    int fd = openat(at, *path ? path : ".", flags | O_NOFOLLOW | O_CLOEXEC);
    leave(at, root);
    return fd < 0 ? -errno : fd;
}

int tree_stat(int root, const char *path, struct stat *st)
{
    int at = reach(root, &path);

    if (at < 0)
        return at;
    int result = fstatat(at, path, st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    leave(at, root);
    return result < 0 ? -errno : 0;
}

int tree_readlink(int root, const char *path, struct str *target)
{
    int at = reach(root, &path);
    char text[PATH_MAX];

    if (at < 0)
        return at;
    ssize_t n = readlinkat(at, path, text, sizeof text);
    leave(at, root);
    if (n < 0)
        return -errno;
    str_add(target, text, (size_t)n);
    return target->failed ? -ENOMEM : 0;
}

static unsigned char type_of(int dir, const struct dirent *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_REG : (unsigned char)IFTODT(st.st_mode);
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Collects type and name of each entry: one byte, the name, NUL. */
static int collect(DIR *dir, struct str *names, size_t *count)
{
    for (;;) {
        errno = 0;
        struct dirent *d = readdir(dir);
        if (!d)
            return -errno;
        if (is_dots(d->d_name))
            continue;
        char type = (char)type_of(dirfd(dir), d);
        str_add(names, &type, 1);
        str_add(names, d->d_name, strlen(d->d_name) + 1);
        if (names->failed)
            return -ENOMEM;
        (*count)++;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tree_entry *)a)->name, ((const struct tree_entry *)b)->name);
}

int tree_list(int root, const char *path, struct tree_list *list)
{
    CLEANUP_STR struct str names = STR_INIT;
    CLEANUP_CLOSEDIR DIR *dir = NULL;
    size_t count = 0;

    memset(list, 0, sizeof *list);
    int fd = tree_open(root, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    dir = fdopendir(fd);
    if (!dir) {
        int error = -errno;
        close(fd);
        return error;
    }
    int error = collect(dir, &names, &count);
    if (error)
        return error;
    list->entry = calloc(count + 1, sizeof *list->entry);
    list->names = str_steal(&names);
    if (!list->entry || !list->names) {
        tree_list_fini(list);
        return -ENOMEM;
    }
    char *next = list->names;
    for (; list->count < count; list->count++) {
        list->entry[list->count] = (struct tree_entry){next + 1, (unsigned char)*next};
        next += 1 + strlen(next + 1) + 1;
    }
    qsort(list->entry, count, sizeof *list->entry, by_name);
    return 0;
}

void tree_list_fini(struct tree_list *list)
{
    free(list->entry);
    free(list->names);
    memset(list, 0, sizeof *list);
}
