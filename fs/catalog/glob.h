/* Globs for paths. `?` is one character, `*` any number of them, neither matches a slash. `**` matches anything. A
 * component `**` before a slash may also match nothing, so that one glob finds a name at any depth, including the
 * top. `[a-z]` and `[!a-z]` match one character of a set, but no slash. `\` quotes. Characters are UTF-8, or single
 * bytes. */
#ifndef FS_CATALOG_GLOB_H
#define FS_CATALOG_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *glob, const char *text, size_t n);
bool glob_has_slash(const char *glob); /* a glob without slash is matched against names only */

#endif
