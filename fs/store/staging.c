/* Access to mapped memory of a file raises SIGBUS where a read would return an error, so it must not fail:
 *
 *   - Writing: the file is fallocated before it is mapped. btrfs writes a block elsewhere the second time, which may
 *     need more room; NOCOW, set while the file is empty, prevents that. If a filesystem cannot reserve (ZFS) or map
 *     files, the staging is a memfd: real memory, but safe.
 *   - Reading back: a page of an SSD's staging that was written out and dropped must be read again from a disk that may
 *     fail. mlock prevents that. The limit of an ordinary user may forbid mlock; then a failing disk under memory
 *     pressure can end the server. The next server finds the tier failed and works without it.
 *   - Fallocated pages that were never written read as zeros without access to the disk. */
#include "fs/store/staging.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_nameless(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd >= 0 ? fd : -errno;
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/new-staging-XXXXXX", directory) >= sizeof path)
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    return fd;
}

static void refuse_copy_on_write(int fd)
{
    int flags;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        (void)!ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

static int map_reserved(int fd, size_t size, void **bytes)
{
    int r;
    do
        r = fallocate(fd, 0, 0, (off_t)size);
    while (r < 0 && errno == EINTR);
    void *map = r < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    *bytes = map;
    return 0;
}

static int map_memory(size_t size, void **bytes)
{
    CLEANUP_CLOSE int fd = memfd_create("dealfs-staging", MFD_CLOEXEC);
    return fd < 0 ? -errno : map_reserved(fd, size, bytes);
}

static int map_file(const char *directory, size_t size, void **bytes)
{
    CLEANUP_CLOSE int fd = open_nameless(directory);
    if (fd < 0)
        return fd;
    refuse_copy_on_write(fd);
    int error = map_reserved(fd, size, bytes);
    if (!error)
        (void)mlock2(*bytes, size, MLOCK_ONFAULT);
    return error;
}

int staging_create(const char *directory, size_t size, struct staging_area **out)
{
    void *bytes = NULL;
    int error = map_file(directory, size, &bytes);
    if (error == -EOPNOTSUPP || error == -ENODEV)
        error = map_memory(size, &bytes);
    if (error)
        return error;
    struct staging_area *s = calloc(1, sizeof *s);
    void *places = mmap(NULL, SEGMENT_PLACES * sizeof(struct value_place), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!s || places == MAP_FAILED) {
        munmap(bytes, size);
        if (places != MAP_FAILED)
            munmap(places, SEGMENT_PLACES * sizeof(struct value_place));
        free(s);
        return -ENOMEM;
    }
    *s = (struct staging_area){bytes, size, places, NULL};
    *out = s;
    return 0;
}

void staging_destroy(struct staging_area *s)
{
    if (!s)
        return;
    munmap(s->bytes, s->size);
    munmap(s->place, SEGMENT_PLACES * sizeof(struct value_place));
    free(s);
}
