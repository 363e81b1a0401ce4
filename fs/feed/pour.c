/* Opens a file, requests readahead with WILLNEED, and closes it. */
#include "fs/feed/pour.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int pour_init(struct pour *p, const struct catalog *catalog, const char *mountpoint, unsigned minor_number)
{
    *p = (struct pour){.catalog = catalog, .minor = minor_number};
    int n = snprintf(p->path, sizeof p->path, "%s/", mountpoint);
    p->prefix = (size_t)n;
    return n < 0 || p->prefix >= sizeof p->path ? -ENAMETOOLONG : 0;
}

/* A descriptor, or -errno. */
static int open_file(struct pour *p, uint32_t file)
{
    struct stat st;
    long n =
        catalog_path(p->catalog, catalog_file_ino(p->catalog, file), p->path + p->prefix, sizeof p->path - p->prefix);
    if (n < 0)
        return -ENAMETOOLONG;
    CLEANUP_CLOSE int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (major(st.st_dev) != 0 || minor(st.st_dev) != p->minor)
        return -ENODEV;
    return steal_fd(fd);
}

static int ask_for(int fd, uint64_t from, uint64_t bytes)
{
    for (uint64_t at = from, end = from + bytes; at < end; at += POUR_PIECE) {
        uint64_t left = end - at;
        int error = posix_fadvise(fd, (off_t)at, (off_t)(left < POUR_PIECE ? left : POUR_PIECE), POSIX_FADV_WILLNEED);
        if (error)
            return -error;
    }
    return 0;
}

int pour_range(struct pour *p, uint32_t file, uint64_t from, uint64_t bytes)
{
    CLEANUP_CLOSE int fd = open_file(p, file);
    int error = fd < 0 ? fd : ask_for(fd, from, bytes);
    p->failed += error != 0;
    p->files += error == 0;
    p->bytes += error == 0 ? bytes : 0;
    return error;
}

/* A process that opens the file meanwhile waits until the lease is returned; the kernel reports this by SIGIO. */
bool pour_unopened(struct pour *p, uint32_t file)
{
    CLEANUP_CLOSE int fd = open_file(p, file);
    if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK))
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}
