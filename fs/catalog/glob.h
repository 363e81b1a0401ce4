/* Globs over paths: `?` is one character and `*` any number of them, neither a slash; `**` is anything; a component
 * `**` before a slash may also be nothing at all, so that one glob finds a name at any depth, the top included;
 * `[a-z]` and `[!a-z]` are one of some characters, no slash; `\` quotes. Characters are UTF-8, or single bytes. */
#ifndef FS_CATALOG_GLOB_H
#define FS_CATALOG_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *glob, const char *text, size_t n);
bool glob_has_slash(const char *glob); /* one without is meant for a name alone */

#endif
