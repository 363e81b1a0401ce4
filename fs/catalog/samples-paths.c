/* A sample list from paths that somebody uploads. */
#include "fs/base/cleanup.h"
#include "fs/catalog/samples-list.h"

#include <inttypes.h>
#include <string.h>

struct upload {
    const struct catalog *catalog;
    const char *const *prefixes;
    bool lines;  /* separated by newlines: escapes and CRLF are understood */
    char *plain; /* for a path without its escapes; as long as the longest path */
    /* The directory of the path before, as it was written: neighbours mostly share it. */
    const char *directory;
    size_t directory_length;
    uint64_t directory_ino;
};

/* ---- one path ---- */

static int find_in(struct upload *u, uint64_t directory, const char *name, size_t n, uint32_t *file)
{
    uint64_t ino;
    int error = catalog_lookup(u->catalog, directory, name, n, &ino);
    return error ? error : catalog_ino_file(u->catalog, ino, file);
}

static int find_relative(struct upload *u, const char *path, size_t n, uint32_t *file)
{
    const char *slash = memrchr(path, '/', n);
    size_t length = slash ? (size_t)(slash - path) : 0;
    const char *name = slash ? slash + 1 : path;
    if (!u->directory_ino || length != u->directory_length || memcmp(path, u->directory, length) != 0) {
        uint64_t ino;
        int error = catalog_find(u->catalog, path, length, &ino);
        if (error)
            return error;
        u->directory_ino = ino;
        u->directory = path;
        u->directory_length = length;
    }
    return find_in(u, u->directory_ino, name, n - (size_t)(name - path), file);
}

/* The prefix without slashes at its end, when it is one of the path: what is behind it, or NULL. */
static const char *behind(const char *prefix, const char *path, size_t n)
{
    size_t length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        length--;
    return length < n && memcmp(prefix, path, length) == 0 && path[length] == '/' ? path + length : NULL;
}

static int find_absolute(struct upload *u, const char *path, size_t n, uint32_t *file)
{
    int error = -EXDEV;
    for (size_t i = 0; u->prefixes && u->prefixes[i]; i++) {
        const char *rest = behind(u->prefixes[i], path, n);
        if (!rest)
            continue;
        error = find_relative(u, rest, n - (size_t)(rest - path), file);
        if (!error)
            break;
    }
    return error;
}

static int find(struct upload *u, const char *path, size_t n, uint32_t *file)
{
    return path[0] == '/' ? find_absolute(u, path, n, file) : find_relative(u, path, n, file);
}

/* As `samples` shows it first, so that every list can be given back; then as it stands. */
static int find_line(struct upload *u, const char *path, size_t n, uint32_t *file)
{
    if (memchr(path, '\\', n)) {
        size_t length = samples_text_unescape(path, n, u->plain);
        int error = find(u, u->plain, length, file);
        u->directory_ino = 0; /* its text is in a buffer that changes */
        if (!error)
            return 0;
    }
    return find(u, path, n, file);
}

/* ---- all paths ---- */

static int refuse(const struct upload *u, uint64_t number, const char *path, size_t n, int error, struct str *why)
{
    enum { SHOWN = 1024 };
    str_addf(why, "%s %" PRIu64 ": ", u->lines ? "line" : "path", number);
    str_add_printable(why, path, n < SHOWN ? n : SHOWN);
    if (n == 0)
        str_adds(why, "empty");
    else if (error == -EINVAL)
        str_adds(why, ": a symbolic link, not a file");
    else if (error == -EXDEV)
        str_adds(why, ": neither in the source nor in the mount");
    else
        str_addf(why, ": %s", strerror(-error));
    return error;
}

static size_t longest(const char *payload, size_t n, char separator)
{
    size_t most = 0;
    for (const char *end = payload + n; payload < end;) {
        const char *stop = memchr(payload, separator, (size_t)(end - payload));
        size_t length = (size_t)((stop ? stop : end) - payload);
        most = length > most ? length : most;
        payload += length + 1;
    }
    return most;
}

static int add_paths(struct upload *u, const char *payload, size_t n, char separator, struct files *files,
                     struct str *why)
{
    uint64_t number = 0;
    for (const char *end = payload + n; payload < end;) {
        const char *stop = memchr(payload, separator, (size_t)(end - payload));
        size_t length = (size_t)((stop ? stop : end) - payload), used = length;
        uint32_t file;
        number++;
        if (u->lines && used > 0 && payload[used - 1] == '\r')
            used--;
        int error = used == 0 ? -EINVAL : u->lines ? find_line(u, payload, used, &file) : find(u, payload, used, &file);
        if (error)
            return refuse(u, number, payload, used, error, why);
        error = files_add(files, file);
        if (error) {
            str_addf(why, "sample list: %s", strerror(-error));
            return error;
        }
        payload += length + (stop ? 1 : 0);
    }
    return 0;
}

int samples_from_paths(const struct catalog *c, const char *payload, size_t n, char separator,
                       const char *const *prefixes, struct samples **out, struct str *why)
{
    struct upload u = {.catalog = c, .prefixes = prefixes, .lines = separator == '\n'};
    struct files files = {0};
    CLEANUP_FREE char *plain = u.plain = malloc(longest(payload, n, separator) + 1);
    int error = plain ? add_paths(&u, payload, n, separator, &files, why) : -ENOMEM;
    if (error) {
        free(files.file);
    } else {
        *out = samples_make(c, files.file, files.count);
        error = *out ? 0 : -ENOMEM;
    }
    if (error == -ENOMEM && !why->length)
        str_addf(why, "sample list: %s", strerror(ENOMEM));
    return error;
}
