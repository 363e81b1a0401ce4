/* Resolves a path for root, without following links of other users. */
#ifndef CLI_BASE_WAY_H
#define CLI_BASE_WAY_H

#include "fs/base/str.h"

/* `path` is absolute; its last component need not exist. -ELOOP: a component is another user's symlink, see `why`.
 * Guarded. */
int way_resolve(const char *path, char **resolved, struct str *why);

#endif
