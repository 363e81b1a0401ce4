/* Our files and folders. */
#include "fs/base/file.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { READ_BYTES = 64 << 10, COPY_BYTES = 1 << 20 };
enum { SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };

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
            want = most - got + 1; /* an extra byte shows that the file is longer */
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

/* If another user may write to the folder, there may be a FIFO, whose open would not return. */
int file_read(int dir, const char *path, size_t most, struct str *out)
{
    CLEANUP_CLOSE int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EINVAL;
    fcntl(fd, F_SETFL, 0);
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

/* Create a new file next to `path`; `name` gets its name. */
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

/* Rename the file that was written next to `path`; after an error, remove it. */
static int settle_beside(int dir, int fd, const char *name, const char *path, int error)
{
    if (!error && (fsync(fd) || renameat(dir, name, dir, path)))
        error = -errno;
    if (error)
        unlinkat(dir, name, 0);
    return error;
}

int file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode)
{
    const struct iovec part = {(void *)bytes, n};
    return file_write_atomic_parts(dir, path, &part, 1, mode);
}

int file_write_atomic_parts(int dir, const char *path, const struct iovec *part, int parts, mode_t mode)
{
    char name[PATH_MAX];
    CLEANUP_CLOSE int fd = open_beside(dir, path, name);
    int error = 0;
    if (fd < 0)
        return fd;
    for (int i = 0; i < parts && !error; i++)
        error = file_write_all(fd, part[i].iov_base, part[i].iov_len);
    if (!error && fchmod(fd, mode))
        error = -errno;
    return settle_beside(dir, fd, name, path, error);
}

int file_map(int fd, size_t least, void **map, size_t *n)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size < least)
        return -EBADMSG;
    *n = (size_t)st.st_size;
    *map = mmap(NULL, *n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    return *map == MAP_FAILED ? -errno : 0;
}

/* The kernel copies if it can; between some filesystems it cannot. */
int file_copy(int from, int to, uint64_t most)
{
    uint64_t copied = 0;
    while (copied <= most) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0);
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
            break;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        copied += (uint64_t)n;
    }
    CLEANUP_FREE char *buffer = malloc(COPY_BYTES);
    if (!buffer)
        return -ENOMEM;
    while (copied <= most) {
        ssize_t n = read(from, buffer, COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int error = file_write_all(to, buffer, (size_t)n);
        if (error)
            return error;
        copied += (uint64_t)n;
    }
    return -EFBIG;
}

int file_copy_atomic(int from, const char *path)
{
    CLEANUP_STR struct str beside = STR_INIT;
    str_addf(&beside, "%s.new", path);
    if (beside.failed)
        return -ENOMEM;
    unlink(beside.data);
    CLEANUP_CLOSE int to = open(beside.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    return settle_beside(AT_FDCWD, to, beside.data, path, file_copy(from, to, UINT64_MAX - 1));
}

int file_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int file_memory(const char *name, const void *bytes, size_t n)
{
    CLEANUP_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? -errno : file_write_all(fd, bytes, n);
    if (!error)
        error = file_seal(fd);
    return error ? error : steal_fd(fd);
}

bool file_is_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS;
}
