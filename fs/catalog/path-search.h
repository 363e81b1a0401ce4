/* Finds the files of a sequence of paths in a catalog. */
#ifndef FS_CATALOG_PATH_SEARCH_H
#define FS_CATALOG_PATH_SEARCH_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"

struct path_search {
    const struct catalog *catalog;
    const char *const *prefixes; /* absolute paths begin with one of these: ends with NULL; or NULL: none */
    /* private: the directory of the previous path, as written: neighbours usually share it */
    const char *directory;
    size_t directory_length;
    uint64_t directory_ino; /* 0: none; set it to 0 when the text of a path changes */
};
/* A path is relative to the source, or absolute. 0, -ENOENT, -ENOTDIR, -EISDIR, -EINVAL (a symlink, or empty), -EXDEV
 * (absolute, below no prefix). */
int path_search_find(struct path_search *search, const char *path, size_t n, uint32_t *file);
/* The same for a line, in which a path may have the escapes of samples_text_read. */
int path_search_line(struct path_search *search, const char *line, size_t n, uint32_t *file);
/* Append the path, and why it is rejected. */
void path_search_refuse(const char *path, size_t n, int error, struct str *why);

#endif
