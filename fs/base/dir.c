/* Folders of our own: made with their parents, removed with all in them. */
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

static int remove_entry(int dir, const char *name);

/* One pass over a folder's entries; goes on past what cannot be removed and returns the first error. */
static int remove_entries(DIR *d)
{
    int first = 0;
    rewinddir(d);
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            return first ? first : -errno;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int error = remove_entry(dirfd(d), e->d_name);
        if (error && !first)
            first = error;
    }
}

static int remove_full_directory(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    CLEANUP_CLOSEDIR DIR *d = fdopendir(fd);
    if (!d) {
        int error = -errno;
        close(fd);
        return error;
    }
    /* Somebody may add entries meanwhile: a few rounds, not for ever. */
    for (int round = 0; round < 10; round++) {
        int error = remove_entries(d);
        if (error)
            return error;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return -errno;
    }
    return -ENOTEMPTY;
}

/* Neither unlink nor rmdir goes into what is mounted on a name: both fail with EBUSY before anything in it is
 * touched, also when it is a FUSE mount that hangs. Only what rmdir found full is opened. */
static int remove_entry(int dir, const char *name)
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
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    return remove_full_directory(dir, name);
}

int dir_remove_tree(int dir, const char *path)
{
    return remove_entry(dir, path);
}
