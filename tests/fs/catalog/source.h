/* Sources for the tests of the catalog: files made by name, scanned, looked up. All below one directory of the test. */
#ifndef TESTS_FS_CATALOG_SOURCE_H
#define TESTS_FS_CATALOG_SOURCE_H

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/catalog/samples.h"
#include "fs/catalog/scanner.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A file of `size` bytes (a hole) with its parents; a path that ends with a slash is a directory. */
static inline void source_add(const char *root, const char *path, off_t size)
{
    CLEANUP_STR struct str whole = STR_INIT;
    str_addf(&whole, "%s/%s", root, path);
    char *slash = strrchr(whole.data, '/');
    *slash = '\0';
    int error = dir_make(whole.data, 0755);
    if (error)
        bail_out("make %s: %s", whole.data, strerror(-error));
    *slash = '/';
    if (slash[1] == '\0')
        return;
    CLEANUP_CLOSE int fd = open(whole.data, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, size))
        bail_out("make %s: %s", whole.data, strerror(errno));
}

/* Files 0, 1, … in two classes, each a byte longer than the one before. */
static inline void source_add_many(const char *root, int files, off_t size)
{
    char name[32];
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "class%d/file%d", i % 2, i);
        source_add(root, name, size + i);
    }
}

static inline void source_link(const char *root, const char *path, const char *target)
{
    CLEANUP_STR struct str whole = STR_INIT;
    str_addf(&whole, "%s/%s", root, path);
    if (symlink(target, whole.data))
        bail_out("make %s: %s", whole.data, strerror(errno));
}

/* Long ago, so that the directory does not count as just changed. */
static inline void source_age(const char *root, const char *path, long seconds)
{
    CLEANUP_STR struct str whole = STR_INIT;
    str_addf(&whole, "%s/%s", root, path);
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};
    if (utimensat(AT_FDCWD, whole.data, t, AT_SYMLINK_NOFOLLOW))
        bail_out("touch %s: %s", whole.data, strerror(errno));
}

static inline int source_scan(const char *root, const char *path, const struct scan_options *options,
                              struct catalog **c, struct scan_progress *result)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_CLOSE int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *c = NULL;
    if (fd < 0)
        bail_out("open %s: %s", root, strerror(errno));
    struct scan_progress unwanted;
    int error =
        scan_source(fd, path, options ? options : &(struct scan_options){0}, c, &why, result ? result : &unwanted);
    if (error && why.length == 0)
        fail("a scan that fails says why");
    if (why.length)
        diag("%s", why.data);
    return error;
}

/* The scan of a test that is about something else. */
static inline struct catalog *source_catalog(const char *root, const char *path)
{
    struct catalog *c;
    int error = source_scan(root, path, NULL, &c, NULL);
    if (error)
        bail_out("scan %s: %s", root, strerror(-error));
    return c;
}

static inline uint64_t source_find(const struct catalog *c, const char *path)
{
    uint64_t ino = 0;
    return catalog_find(c, path, strlen(path), &ino) ? 0 : ino;
}

/* The path of an inode in one of a few buffers. */
static inline const char *source_path(const struct catalog *c, uint64_t ino)
{
    static char buffer[4][CATALOG_PATH_MAX];
    static unsigned turn;
    char *path = buffer[turn++ % 4];
    return catalog_path(c, ino, path, CATALOG_PATH_MAX) < 0 ? "?" : path;
}

/* --- sample lists --- */

static inline void source_list_text(struct samples *s, struct str *text)
{
    int error = samples_text_read(s, 0, SIZE_MAX, text);
    if (error)
        bail_out("read a list: %s", strerror(-error));
}

static inline void source_list_is(struct samples *s, const char *expected, const char *what)
{
    CLEANUP_STR struct str text = STR_INIT;
    source_list_text(s, &text);
    is_str(text.data ? text.data : "", expected, "%s", what);
    is_uint(samples_text_length(s), text.length, "and its length");
}

/* A saved list, of which `image` becomes the bytes. */
static inline void source_list_damage(const struct catalog *c, const char *path, struct str *image)
{
    struct samples *loaded;
    uint64_t version = 0;
    unsigned taken = 0;
    file_read(AT_FDCWD, path, 1 << 20, image);
    for (size_t i = 0; i < image->length; i++) {
        image->data[i] ^= 1;
        file_write_atomic(AT_FDCWD, path, image->data, image->length, 0600);
        image->data[i] ^= 1;
        taken += samples_load(c, path, &loaded, &version) == 0;
        file_write_atomic(AT_FDCWD, path, image->data, i, 0600);
        taken += samples_load(c, path, &loaded, &version) == 0;
    }
    is_uint(taken, 0, "with any byte changed, or cut anywhere, it is refused");
}

#endif
