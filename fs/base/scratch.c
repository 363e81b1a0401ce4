/* Mapped files without a name. Their room is allocated at once: a missing page would cause SIGBUS later. */
#include "fs/base/scratch.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

int scratch_open(const char *directory)
{
    int fd = directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    return fd >= 0 ? fd : memfd_create("dealfs-scratch", MFD_CLOEXEC);
}

int scratch_grow(int fd, size_t length, struct scratch *scratch)
{
    int error = -posix_fallocate(fd, 0, (off_t)length);
    if (error)
        return error;
    void *bytes = scratch->bytes ? mremap(scratch->bytes, scratch->length, length, MREMAP_MAYMOVE)
                                 : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    *scratch = (struct scratch){bytes, length};
    return 0;
}

int scratch_make(const char *directory, size_t length, struct scratch *scratch)
{
    struct scratch made = {0};
    CLEANUP_CLOSE int fd = scratch_open(directory);
    int error = fd < 0 ? -errno : scratch_grow(fd, length ? length : 1, &made);
    if (!error)
        *scratch = made;
    return error;
}

void scratch_fini(struct scratch *scratch)
{
    if (scratch->bytes)
        munmap(scratch->bytes, scratch->length);
    *scratch = (struct scratch){0};
}
