/* If openat2 exists and the path fits, one call does it. Else the path is walked in chunks: as long as PATH_MAX allows,
 * or component by component with O_NOFOLLOW if the kernel or a seccomp filter rejects openat2. */
#include "fs/base/beneath.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

static int open_chunk(int dir, const char *path, int flags, bool single)
{
    struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = single ? openat(dir, path, flags | O_NOFOLLOW) : syscall(SYS_openat2, dir, path, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

/* Length of the next chunk: as many whole components as fit into PATH_MAX, or one. */
static size_t chunk_length(const char *path, bool single)
{
    size_t n = strcspn(path, "/");
    while (!single && path[n] == '/') {
        size_t more = n + 1 + strcspn(path + n + 1, "/");
        if (more >= PATH_MAX)
            break;
        n = more;
    }
    return n;
}

static int beneath_walk(int root, const char *path, int flags, bool single)
{
    CLEANUP_CLOSE int at = -1;
    int dir = root;
    for (;;) {
        char chunk[PATH_MAX];
        size_t n = chunk_length(path, single);
        if (n >= sizeof chunk)
            return -ENAMETOOLONG;
        memcpy(chunk, path, n);
        chunk[n] = '\0';
        bool last = path[n] == '\0';
        int how = last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC;
        int fd = open_chunk(dir, chunk, how, single);
        if (fd < 0 || last)
            return fd;
        if (at >= 0)
            close(at);
        dir = at = fd;
        path += n + 1;
    }
}

int beneath_open(int root, const char *path, int flags)
{
    int fd = beneath_walk(root, path, flags, false);
    if (fd == -ENOSYS || fd == -EPERM)
        fd = beneath_walk(root, path, flags, true);
    return fd;
}
