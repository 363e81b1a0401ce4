/* Resolves a path for root, without following links of other users. */
#ifndef CLI_BASE_WAY_H
#define CLI_BASE_WAY_H

#include "fs/base/str.h"

#include <stdbool.h>

/* `path` is absolute; its last component need not exist. -ELOOP: a component is another user's symlink, see `why`.
 * Guarded. */
int way_resolve(const char *path, char **resolved, struct str *why);
/* Can only root change or replace each directory of the path? Checked from the top, so that it stays true. Other users
 * may have their own files in it (/tmp). */
bool way_is_roots_alone(const char *directory);

#endif
