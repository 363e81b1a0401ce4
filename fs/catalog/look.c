/* The system calls of a scan. */
#include "fs/base/cleanup.h"
#include "fs/catalog/crawl.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

int look(int fd, const char *name, int flags, struct stat *st)
{
    struct statx x;
    unsigned want = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_SIZE | STATX_MTIME | STATX_CTIME;
    if (statx(fd, name ? name : "", flags | AT_NO_AUTOMOUNT | (name ? 0 : AT_EMPTY_PATH), want, &x))
        return -errno;
    memset(st, 0, sizeof *st);
    st->st_mode = x.stx_mode;
    st->st_uid = x.stx_uid;
    st->st_gid = x.stx_gid;
    st->st_size = (off_t)x.stx_size;
    st->st_mtim = (struct timespec){.tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec};
    st->st_ctim = (struct timespec){.tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec};
    return 0;
}

int64_t look_time(struct timespec t)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, (int64_t)1000000000, &ns) ||
        __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

/* One name after the other, for kernels and sandboxes without openat2. */
static int open_steps(int at, char *path, int flags)
{
    CLEANUP_CLOSE int fd = -1;
    char *rest = NULL;
    for (char *name = strtok_r(path, "/", &rest); name;) {
        char *next = strtok_r(NULL, "/", &rest);
        int down = openat(fd >= 0 ? fd : at, name, O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC | (next ? O_PATH : flags));
        if (down < 0)
            return -errno;
        if (fd >= 0)
            close(fd);
        fd = down;
        name = next;
    }
    return steal_fd(fd);
}

static int open_path(int at, char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC),
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    for (int attempt = 0; attempt < 8; attempt++) { /* EAGAIN: a rename was going on */
        long fd = syscall(SYS_openat2, at, path, &how, sizeof how);
        if (fd >= 0)
            return (int)fd;
        if (errno == ENOSYS || errno == EPERM)
            return open_steps(at, path, flags);
        if (errno != EAGAIN)
            break;
    }
    return -errno;
}

int look_open(int source, const struct branch *n, int flags)
{
    CLEANUP_FREE char *path = branch_path(n);
    if (!path)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = -1;
    char *from = path, *end = path + strlen(path);
    while (end - from >= PATH_MAX) { /* in pieces that the kernel takes */
        char *slash = memrchr(from, '/', PATH_MAX - 1);
        if (!slash)
            return -ENAMETOOLONG;
        *slash = '\0';
        int down = open_path(fd >= 0 ? fd : source, from, O_PATH);
        if (down < 0)
            return down;
        if (fd >= 0)
            close(fd);
        fd = down;
        from = slash + 1;
    }
    return open_path(fd >= 0 ? fd : source, from, flags);
}
