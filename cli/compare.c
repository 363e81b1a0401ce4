/* One entry of the mount against the same of the source. */
#include "cli/compare.h"

#include "cli/tree.h"
#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int compare_init(struct compare *c)
{
    for (int i = 0; i < 2; i++)
        c->buffer[i] = malloc(COMPARE_BYTES);
    if (c->buffer[0] && c->buffer[1])
        return 0;
    compare_fini(c);
    return -ENOMEM;
}

void compare_fini(struct compare *c)
{
    for (int i = 0; i < 2; i++) {
        free(c->buffer[i]);
        c->buffer[i] = NULL;
    }
}

static enum compare_result differs(struct str *difference, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum compare_result differs(struct str *difference, const char *path, const char *format, ...)
{
    va_list args;

    if (*path)
        str_add_printable(difference, path, strlen(path));
    else
        str_adds(difference, ".");
    str_adds(difference, ": ");
    va_start(args, format);
    str_addv(difference, format, args);
    va_end(args);
    return COMPARE_DIFFERS;
}

static const char *type_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symlink";
    default:
        return "special file";
    }
}

static enum compare_result compare_attributes(const char *path, const struct stat *a, const struct stat *b,
                                              struct str *difference)
{
    if ((a->st_mode & S_IFMT) != (b->st_mode & S_IFMT))
        return differs(difference, path, "type: %s in the source, %s in the mount", type_name(a->st_mode),
                       type_name(b->st_mode));
    if (!S_ISDIR(a->st_mode) && a->st_size != b->st_size)
        return differs(difference, path, "size: %jd in the source, %jd in the mount", (intmax_t)a->st_size,
                       (intmax_t)b->st_size);
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
        return differs(difference, path, "mtime: %jd.%09ld in the source, %jd.%09ld in the mount",
                       (intmax_t)a->st_mtim.tv_sec, a->st_mtim.tv_nsec, (intmax_t)b->st_mtim.tv_sec,
                       b->st_mtim.tv_nsec);
    if (!S_ISLNK(a->st_mode) && (a->st_mode & 07777) != (b->st_mode & 07777))
        return differs(difference, path, "mode: %04o in the source, %04o in the mount", a->st_mode & 07777u,
                       b->st_mode & 07777u);
    return COMPARE_SAME;
}

/* Up to n bytes, fewer only at the end of the file. */
static ssize_t read_fully(int fd, char *buffer, size_t n, uint64_t offset)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, buffer + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static enum compare_result compare_piece(struct compare *c, const char *path, uint64_t offset, size_t n, size_t m,
                                         struct str *difference)
{
    const char *a = c->buffer[0], *b = c->buffer[1];
    size_t common = n < m ? n : m, i = 0;

    if (memcmp(a, b, common) != 0) {
        while (a[i] == b[i])
            i++;
        return differs(difference, path, "byte at offset %" PRIu64 ": 0x%02x in the source, 0x%02x in the mount",
                       offset + i, (unsigned char)a[i], (unsigned char)b[i]);
    }
    if (n != m)
        return differs(difference, path, "ends at offset %" PRIu64 " in the %s", offset + common,
                       n < m ? "source and not in the mount" : "mount and not in the source");
    return COMPARE_SAME;
}

static enum compare_result compare_bytes(struct compare *c, const char *path, int source, int mount,
                                         struct str *difference)
{
    for (uint64_t offset = 0;; offset += COMPARE_BYTES) {
        if (c->stop(c->user))
            return COMPARE_STOPPED;
        ssize_t n = read_fully(source, c->buffer[0], COMPARE_BYTES, offset);
        if (n < 0)
            return differs(difference, path, "read from the source at offset %" PRIu64 ": %s", offset,
                           strerror((int)-n));
        ssize_t m = read_fully(mount, c->buffer[1], COMPARE_BYTES, offset);
        if (m < 0)
            return differs(difference, path, "read from the mount at offset %" PRIu64 ": %s", offset,
                           strerror((int)-m));
        enum compare_result result = compare_piece(c, path, offset, (size_t)n, (size_t)m, difference);
        if (result != COMPARE_SAME)
            return result;
        c->read(c->user, (uint64_t)n);
        if (n < COMPARE_BYTES)
            return COMPARE_SAME;
    }
}

static enum compare_result compare_file(struct compare *c, const char *path, struct str *difference)
{
    CLEANUP_CLOSE int source = tree_open(c->source, path, O_RDONLY | O_NONBLOCK);
    CLEANUP_CLOSE int mount = tree_open(c->mount, path, O_RDONLY | O_NONBLOCK);

    if (source == -EACCES)
        return COMPARE_UNREADABLE;
    if (source < 0)
        return differs(difference, path, "open in the source: %s", strerror(-source));
    if (mount < 0)
        return differs(difference, path, "open in the mount: %s", strerror(-mount));
    posix_fadvise(mount, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(source, 0, 0, POSIX_FADV_SEQUENTIAL);
    return compare_bytes(c, path, source, mount, difference);
}

static enum compare_result compare_link(struct compare *c, const char *path, struct str *difference)
{
    CLEANUP_STR struct str a = STR_INIT, b = STR_INIT;
    int error = tree_readlink(c->source, path, &a);

    if (error)
        return differs(difference, path, "read the symlink in the source: %s", strerror(-error));
    error = tree_readlink(c->mount, path, &b);
    if (error)
        return differs(difference, path, "read the symlink in the mount: %s", strerror(-error));
    if (a.length == b.length && memcmp(a.data, b.data, a.length) == 0)
        return COMPARE_SAME;
    differs(difference, path, "target: ");
    str_add_printable(difference, a.data, a.length);
    str_adds(difference, " in the source, ");
    str_add_printable(difference, b.data, b.length);
    str_adds(difference, " in the mount");
    return COMPARE_DIFFERS;
}

enum compare_result compare_entry(struct compare *c, const char *path, struct str *difference)
{
    struct stat a, b;
    int error = tree_stat(c->source, path, &a);

    if (error)
        return differs(difference, path, "in the source: %s", strerror(-error));
    error = tree_stat(c->mount, path, &b);
    if (error)
        return differs(difference, path, "in the mount: %s", strerror(-error));
    enum compare_result result = compare_attributes(path, &a, &b, difference);
    if (result == COMPARE_SAME && S_ISREG(a.st_mode))
        result = compare_file(c, path, difference);
    else if (result == COMPARE_SAME && S_ISLNK(a.st_mode))
        result = compare_link(c, path, difference);
    return result;
}
