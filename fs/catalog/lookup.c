/* Finds inodes by name: each kind of a directory's children is a sorted slice. */
#include "fs/catalog/catalog-inside.h"

#include <errno.h>
#include <string.h>

static int name_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Position in the slice, or its length. */
static uint32_t slice_find(const struct catalog *c, struct slice s, const char *name, size_t length)
{
    uint32_t low = 0, high = s.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t here = slice_name(&s, middle);
        int order = name_compare(catalog_string(c, here), name_length(here), name, length);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return s.count;
}

uint32_t catalog_subdirectory(const struct catalog *c, uint32_t directory, const char *name, size_t length)
{
    const struct format_directory *d = catalog_dir(c, directory);
    uint32_t place = slice_find(c, slice_directories(c, d), name, length);
    return place < d->directories ? d->first_directory + place : 0;
}

bool catalog_file_in(const struct catalog *c, uint32_t directory, const char *name, size_t length, uint32_t *file)
{
    const struct format_directory *d = catalog_dir(c, directory);
    uint32_t place = slice_find(c, slice_files(c, d), name, length);
    *file = d->first_file + place;
    return place < d->files;
}

static int is_directory(const struct catalog *c, uint64_t ino)
{
    if (ino < CATALOG_ROOT || ino > catalog_inodes(c))
        return -ENOENT;
    return ino <= c->directories ? 0 : -ENOTDIR;
}

int catalog_lookup(const struct catalog *c, uint64_t directory, const char *name, size_t length, uint64_t *ino)
{
    int error = is_directory(c, directory);
    if (error)
        return error;
    uint32_t file;
    if (catalog_file_in(c, (uint32_t)directory, name, length, &file)) {
        *ino = catalog_file_ino(c, file);
        return 0;
    }
    uint32_t child = catalog_subdirectory(c, (uint32_t)directory, name, length);
    if (child) {
        *ino = child;
        return 0;
    }
    const struct format_directory *d = catalog_dir(c, directory);
    uint32_t place = slice_find(c, slice_links(c, d), name, length);
    if (place == d->links)
        return -ENOENT;
    *ino = CATALOG_ROOT + (uint64_t)c->directories + c->files + d->first_link + place;
    return 0;
}

int catalog_child(const struct catalog *c, uint64_t directory, uint64_t place, uint64_t *ino)
{
    int error = is_directory(c, directory);
    if (error)
        return error;
    const struct format_directory *d = catalog_dir(c, directory);
    if (place < d->directories) {
        *ino = d->first_directory + place;
        return 0;
    }
    place -= d->directories;
    if (place < d->files) {
        *ino = catalog_file_ino(c, d->first_file + (uint32_t)place);
        return 0;
    }
    place -= d->files;
    if (place >= d->links)
        return -ENOENT;
    *ino = CATALOG_ROOT + (uint64_t)c->directories + c->files + d->first_link + place;
    return 0;
}

int catalog_find(const struct catalog *c, const char *path, size_t length, uint64_t *ino)
{
    uint64_t at = CATALOG_ROOT;
    for (const char *end = path + length; path < end;) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t n = (size_t)((slash ? slash : end) - path);
        if (n > 0 && !(n == 1 && path[0] == '.')) {
            int error = catalog_lookup(c, at, path, n, &at);
            if (error)
                return error;
        }
        path += n + (slash ? 1 : 0);
    }
    *ino = at;
    return 0;
}
