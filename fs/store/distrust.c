#include "fs/store/distrust.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_in(const char *folder, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "%s/distrusted", folder);
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : fd;
}

int distrust_read(const char *folder, struct distrust *d)
{
    CLEANUP_STR struct str bytes = STR_INIT;
    d->count = 0;
    CLEANUP_CLOSE int fd = open_in(folder, O_RDONLY);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int error = file_read_fd(fd, sizeof d->list, &bytes);
    if (error && error != -EFBIG)
        return error;
    /* the last one may be torn */
    d->count = error ? DISTRUST_MOST : bytes.length / sizeof d->list[0];
    if (!error && d->count)
        memcpy(d->list, bytes.data, d->count * sizeof d->list[0]);
    return 0;
}

bool distrust_has(const struct distrust *d, const struct digest *version, uint64_t scanned)
{
    bool found = d->count == DISTRUST_MOST;
    for (size_t i = 0; i < d->count && !found; i++)
        found = memcmp(&d->list[i].version, version, sizeof *version) == 0 && d->list[i].scanned != scanned;
    return found;
}

void distrust_clear(const char *folder)
{
    char path[64];
    snprintf(path, sizeof path, "%s/distrusted", folder);
    unlink(path);
}

int distrust_add(const char *folder, const struct distrusted *one)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open_in(folder, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((size_t)st.st_size >= DISTRUST_MOST * sizeof *one)
        return 0;
    /* behind a torn one */
    off_t torn = st.st_size % (off_t)sizeof *one;
    return torn && ftruncate(fd, st.st_size - torn) < 0 ? -errno : file_write_all(fd, one, sizeof *one);
}
