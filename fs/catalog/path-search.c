/* The directory of a path is looked up once for all neighbours that share it. */
#include "fs/catalog/path-search.h"

#include "fs/catalog/samples.h"

#include <errno.h>
#include <string.h>

enum { LINE_MOST = 2 * CATALOG_PATH_MAX }; /* maximum length of a path with escapes */

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
    if (n == 0)
        return -EINVAL;
    return path[0] == '/' ? find_absolute(u, path, n, file) : find_relative(u, path, n, file);
}

/* First as written by `samples`, so that its lines can be used; then as it stands. */
int path_search_line(struct path_search *u, const char *line, size_t n, uint32_t *file)
{
    char plain[LINE_MOST];
    if (n <= sizeof plain && memchr(line, '\\', n)) {
        size_t length = samples_text_unescape(line, n, plain);
        int error = path_search_find(u, plain, length, file);
        u->directory_ino = 0; /* its text is in a buffer that ends here */
        if (!error)
            return 0;
    }
    return path_search_find(u, line, n, file);
}

void path_search_refuse(const char *path, size_t n, int error, struct str *why)
{
    enum { SHOWN = 1024 };
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
