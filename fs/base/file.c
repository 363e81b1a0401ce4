/* Files and folders of our own. */
#include "fs/base/file.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { READ_BYTES = 64 << 10 };

int file_read_fd(int fd, size_t most, struct str *out)
{
    struct stat st;
    size_t before = out->length, hint = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        hint = (size_t)st.st_size < most ? (size_t)st.st_size : most;
    int error = 0;
    for (size_t got = 0;;) {
        size_t want = got < hint ? hint - got : got == hint && hint > 0 ? 1 : READ_BYTES;
        if (want > most - got)
            want = most - got + 1; /* one byte more shows that there is more */
        char *end = str_reserve(out, want);
        if (!end) {
            error = -ENOMEM;
            break;
        }
        ssize_t n = read(fd, end, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            error = -errno;
        if (n <= 0)
            break;
        got += (size_t)n;
        if (got > most) {
            error = -EFBIG;
            break;
        }
        out->length += (size_t)n;
    }
    if (error)
        out->length = before;
    if (out->data)
        out->data[out->length] = '\0';
    return error;
}

int file_read(int dir, const char *path, size_t most, struct str *out)
{
    CLEANUP_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return file_read_fd(fd, most, out);
}

int file_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t written = write(fd, p, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        if (written == 0)
            return -EIO;
        p += written;
        n -= (size_t)written;
    }
    return 0;
}

/* A new file beside `path`, whose name is left in `name`. */
static int open_beside(int dir, const char *path, char name[PATH_MAX])
{
    for (int attempt = 0; attempt < 100; attempt++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            return -EIO;
        if (snprintf(name, PATH_MAX, "%s.%08x~", path, random) >= PATH_MAX)
            return -ENAMETOOLONG;
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

static int write_and_sync(int fd, const void *bytes, size_t n, mode_t mode)
{
    int error = file_write_all(fd, bytes, n);
    if (!error && (fchmod(fd, mode) || fsync(fd)))
        error = -errno;
    return error;
}

int file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode)
{
    char name[PATH_MAX];
    CLEANUP_CLOSE int fd = open_beside(dir, path, name);
    if (fd < 0)
        return fd;
    int error = write_and_sync(fd, bytes, n, mode);
    if (!error && renameat(dir, name, dir, path))
        error = -errno;
    if (error)
        unlinkat(dir, name, 0);
    return error;
}

uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_realtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
