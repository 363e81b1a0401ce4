/* Compares an entry of the mount with the same entry of the source. */
#include "cli/live/compare.h"

#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/catalog/file-state.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

static enum compare_result differs(struct compare *c, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum compare_result differs(struct compare *c, const char *path, const char *format, ...)
{
    va_list args;
    str_clear(&c->difference);
    str_add_printable(&c->difference, *path ? path : ".", *path ? strlen(path) : 1);
    str_adds(&c->difference, ": ");
    va_start(args, format);
    str_addv(&c->difference, format, args);
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

static const char *source_name(const struct derived_record *made)
{
    return made ? "what was resized" : "the source";
}

/* `made` NULL: the file must be as in the source. */
static enum compare_result compare_attributes(struct compare *c, const char *path, const struct stat *a,
                                              const struct stat *b, const struct derived_record *made)
{
    off_t size = made ? (off_t)made->size : a->st_size;
    if ((a->st_mode & S_IFMT) != (b->st_mode & S_IFMT))
        return differs(c, path, "type: %s in the source, %s in the mount", type_name(a->st_mode),
                       type_name(b->st_mode));
    if (!S_ISDIR(a->st_mode) && size != b->st_size)
        return differs(c, path, "size: %jd in %s, %jd in the mount", (intmax_t)size, source_name(made),
                       (intmax_t)b->st_size);
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
        return differs(c, path, "mtime: %jd.%09ld in the source, %jd.%09ld in the mount", (intmax_t)a->st_mtim.tv_sec,
                       a->st_mtim.tv_nsec, (intmax_t)b->st_mtim.tv_sec, b->st_mtim.tv_nsec);
    if (!S_ISLNK(a->st_mode) && (a->st_mode & 07777) != (b->st_mode & 07777))
        return differs(c, path, "mode: %04o in the source, %04o in the mount", a->st_mode & 07777u,
                       b->st_mode & 07777u);
    return COMPARE_SAME;
}

/* Read n bytes, or fewer at the end of the file. */
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

static enum compare_result compare_piece(struct compare *c, const char *path, uint64_t offset, size_t n, size_t m)
{
    const char *a = c->buffer[0], *b = c->buffer[1];
    size_t common = n < m ? n : m, i = 0;
    if (memcmp(a, b, common) != 0) {
        while (a[i] == b[i])
            i++;
        return differs(c, path, "byte at offset %" PRIu64 ": 0x%02x in the source, 0x%02x in the mount", offset + i,
                       (unsigned char)a[i], (unsigned char)b[i]);
    }
    if (n != m)
        return differs(c, path, "ends at offset %" PRIu64 " in the %s", offset + common,
                       n < m ? "source and not in the mount" : "mount and not in the source");
    return COMPARE_SAME;
}

static enum compare_result compare_bytes(struct compare *c, const char *path, int source, int mount)
{
    for (uint64_t offset = 0;; offset += COMPARE_BYTES) {
        if (c->stop(c->user))
            return COMPARE_STOPPED;
        ssize_t n = read_fully(source, c->buffer[0], COMPARE_BYTES, offset);
        if (n < 0)
            return differs(c, path, "read from the source at offset %" PRIu64 ": %s", offset, strerror((int)-n));
        ssize_t m = read_fully(mount, c->buffer[1], COMPARE_BYTES, offset);
        if (m < 0)
            return differs(c, path, "read from the mount at offset %" PRIu64 ": %s", offset, strerror((int)-m));
        enum compare_result result = compare_piece(c, path, offset, (size_t)n, (size_t)m);
        if (result != COMPARE_SAME)
            return result;
        atomic_fetch_add(c->bytes, (uint64_t)n);
        if (n < COMPARE_BYTES)
            return COMPARE_SAME;
    }
}

static int open_below(int root, const char *path, int flags)
{
    return beneath_open(root, *path ? path : ".", flags | O_NOFOLLOW | O_CLOEXEC);
}

static int read_whole(int fd, struct str *bytes)
{
    enum { MOST = 1 << 30 };
    return file_read_fd(fd, MOST, bytes);
}

/* Make the file again; compare the result with the mount and with its record. */
static enum compare_result compare_made(struct compare *c, const char *path, const struct derived_record *record,
                                        int source, int mount)
{
    const struct image_shrinking wanted = {.side = c->derived->terms.side, .quality = c->derived->terms.quality};
    CLEANUP_STR struct str original = STR_INIT, made = STR_INIT, shown = STR_INIT;
    struct image_reason reason;
    int error = read_whole(source, &original);
    if (error)
        return differs(c, path, "read from the source: %s", strerror(-error));
    if (crew_shrink(c->crew, original.data, original.length, &wanted, &made, &reason) != IMAGE_FINE)
        return c->stop(c->user) ? COMPARE_STOPPED : differs(c, path, "cannot be resized again: %s", reason.text);
    if (made.length != record->size || hash64(made.data, made.length, 0) != record->hash)
        return differs(c, path, "resizing it again gives other bytes than when it was mounted");
    error = read_whole(mount, &shown);
    if (error)
        return differs(c, path, "read from the mount: %s", strerror(-error));
    if (shown.length != made.length || memcmp(shown.data, made.data, made.length) != 0)
        return differs(c, path, "its bytes differ from the resized image");
    atomic_fetch_add(c->bytes, made.length);
    return COMPARE_SAME;
}

static enum compare_result compare_file(struct compare *c, const char *path, const struct derived_record *made)
{
    CLEANUP_CLOSE int source = open_below(c->source, path, O_RDONLY | O_NONBLOCK);
    CLEANUP_CLOSE int mount = open_below(c->mount, path, O_RDONLY | O_NONBLOCK);
    if (source == -EACCES)
        return COMPARE_UNREADABLE;
    if (source < 0)
        return differs(c, path, "open in the source: %s", strerror(-source));
    if (mount < 0)
        return differs(c, path, "open in the mount: %s", strerror(-mount));
    posix_fadvise(mount, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(source, 0, 0, POSIX_FADV_SEQUENTIAL);
    return made ? compare_made(c, path, made, source, mount) : compare_bytes(c, path, source, mount);
}

static enum compare_result compare_link(struct compare *c, const char *path, int source, int mount)
{
    char a[PATH_MAX], b[PATH_MAX];
    ssize_t n = readlinkat(source, "", a, sizeof a), m = n < 0 ? 0 : readlinkat(mount, "", b, sizeof b);
    if (n < 0 || m < 0)
        return differs(c, path, "read the symlink in the %s: %s", n < 0 ? "source" : "mount", strerror(errno));
    if (n == m && memcmp(a, b, (size_t)n) == 0)
        return COMPARE_SAME;
    differs(c, path, "target: ");
    str_add_printable(&c->difference, a, (size_t)n);
    str_adds(&c->difference, " in the source, ");
    str_add_printable(&c->difference, b, (size_t)m);
    str_adds(&c->difference, " in the mount");
    return COMPARE_DIFFERS;
}

static int look_at(int root, const char *path, struct stat *st)
{
    CLEANUP_CLOSE int fd = open_below(root, path, O_PATH);
    if (fd < 0)
        return fd;
    return fstat(fd, st) < 0 ? -errno : steal_fd(fd);
}

/* The record of a resized file; NULL: the file is as in the source. */
static const struct derived_record *find_made(const struct compare *c, const char *path)
{
    uint64_t ino;
    uint32_t file;
    if (!c->derived || catalog_find(c->derived->original, path, strlen(path), &ino) ||
        catalog_ino_file(c->derived->original, ino, &file) || c->derived->record[file].outcome != DERIVED_MADE)
        return NULL;
    return &c->derived->record[file];
}

enum compare_result compare_entry(struct compare *c, const char *path)
{
    const struct derived_record *made = find_made(c, path);
    CLEANUP_CLOSE int source = -1, mount = -1;
    struct stat a, b;
    source = look_at(c->source, path, &a);
    if (source < 0)
        return differs(c, path, "in the source: %s", strerror(-source));
    mount = look_at(c->mount, path, &b);
    if (mount < 0)
        return differs(c, path, "in the mount: %s", strerror(-mount));
    if (c->acls || a.st_mode != b.st_mode)
        state_limit_mode(source, NULL, &a, c->without_acls);
    enum compare_result result = compare_attributes(c, path, &a, &b, made);
    if (result == COMPARE_SAME && S_ISREG(a.st_mode))
        return compare_file(c, path, made);
    return result == COMPARE_SAME && S_ISLNK(a.st_mode) ? compare_link(c, path, source, mount) : result;
}
