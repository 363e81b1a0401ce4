/* Makes a sample list from uploaded paths. */
#include "fs/base/cleanup.h"
#include "fs/catalog/samples-inside.h"

#include <inttypes.h>
#include <string.h>

enum { PLAIN_MOST = 2 * CATALOG_PATH_MAX }; /* maximum length of a path with escapes */

struct path_reader {
    struct path_search search;
    const struct samples_upload *upload;
    bool lines; /* separated by newlines, with escapes; CRLF is accepted */
    struct str *why;
    char *plain; /* buffer for a path without its escapes */
};

/* --- one path --- */

static int find_relative(struct path_search *u, const char *path, size_t n, uint32_t *file)
{
    const char *slash = memrchr(path, '/', n);
    size_t length = slash ? (size_t)(slash - path) : 0;
    const char *name = slash ? slash + 1 : path;
    uint64_t ino;
    int error = 0;
    if (!u->directory_ino || length != u->directory_length || memcmp(path, u->directory, length) != 0) {
        error = catalog_find(u->catalog, path, length, &ino);
        if (error)
            return error;
        u->directory_ino = ino;
        u->directory = path;
        u->directory_length = length;
    }
    error = catalog_lookup(u->catalog, u->directory_ino, name, n - (size_t)(name - path), &ino);
    return error ? error : catalog_ino_file(u->catalog, ino, file);
}

/* `prefix` without final slashes, if it is a prefix of the path: returns the rest, or NULL. */
static const char *behind_prefix(const char *prefix, const char *path, size_t n)
{
    size_t length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        length--;
    return length < n && memcmp(prefix, path, length) == 0 && path[length] == '/' ? path + length : NULL;
}

static int find_absolute(struct path_search *u, const char *path, size_t n, uint32_t *file)
{
    int error = -EXDEV;
    for (size_t i = 0; u->prefixes && u->prefixes[i]; i++) {
        const char *rest = behind_prefix(u->prefixes[i], path, n);
        if (!rest)
            continue;
        error = find_relative(u, rest, n - (size_t)(rest - path), file);
        if (!error)
            break;
    }
    return error;
}

int path_search_find(struct path_search *u, const char *path, size_t n, uint32_t *file)
{
    return path[0] == '/' ? find_absolute(u, path, n, file) : find_relative(u, path, n, file);
}

/* First as written by `samples`, so that its lines can be uploaded; then unescaped. */
static int find_line(struct path_reader *u, const char *path, size_t n, uint32_t *file)
{
    if (n <= PLAIN_MOST && memchr(path, '\\', n)) {
        size_t length = samples_text_unescape(path, n, u->plain);
        int error = path_search_find(&u->search, u->plain, length, file);
        u->search.directory_ino = 0; /* its text is in a buffer that changes */
        if (!error)
            return 0;
    }
    return path_search_find(&u->search, path, n, file);
}

/* --- all paths --- */

void path_search_refuse(const char *unit, uint64_t number, const char *path, size_t n, int error, struct str *why)
{
    enum { SHOWN = 1024 };
    str_addf(why, "%s %" PRIu64 ": ", unit, number);
    str_add_printable(why, path, n < SHOWN ? n : SHOWN);
    if (n == 0)
        str_adds(why, "empty");
    else if (error == -EINVAL)
        str_adds(why, ": a symbolic link, not a file");
    else if (error == -EXDEV)
        str_adds(why, ": neither in the source nor in the mount");
    else
        str_addf(why, ": %s", strerror(-error));
}

static int add_paths(struct path_reader *u, struct files *files)
{
    uint64_t number = 0;
    const char *path = u->upload->text, *end = path + u->upload->length;
    while (path < end) {
        const char *stop = memchr(path, u->upload->separator, (size_t)(end - path));
        size_t length = (size_t)((stop ? stop : end) - path), used = length;
        uint32_t file;
        number++;
        if (u->lines && used > 0 && path[used - 1] == '\r')
            used--;
        int error = used == 0  ? -EINVAL
                    : u->lines ? find_line(u, path, used, &file)
                               : path_search_find(&u->search, path, used, &file);
        if (error) {
            path_search_refuse(u->lines ? "line" : "path", number, path, used, error, u->why);
            return error;
        }
        error = files_add(files, file);
        if (error)
            return str_fail(u->why, error, "sample list: %s", strerror(-error));
        path += length + (stop ? 1 : 0);
    }
    return 0;
}

int samples_from_paths(const struct catalog *c, const struct samples_upload *upload, struct samples **out,
                       struct str *why)
{
    struct path_reader u = {.search = {.catalog = c, .prefixes = upload->prefixes},
                            .upload = upload,
                            .lines = upload->separator == '\n',
                            .why = why};
    struct files files = {0};
    CLEANUP_FREE char *plain = u.plain = malloc(PLAIN_MOST);
    int error = plain ? add_paths(&u, &files) : -ENOMEM;
    error = files_to_samples(&files, error, c, out);
    if (error == -ENOMEM && !why->length)
        str_addf(why, "sample list: %s", strerror(ENOMEM));
    return error;
}
