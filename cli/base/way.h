/* Where a path leads, for root: links of other users are not followed. */
#ifndef CLI_BASE_WAY_H
#define CLI_BASE_WAY_H

#include "fs/base/str.h"

/* `path` is absolute, and gets no further than its last name; that need not be there. -ELOOP: a symlink of another
 * user is on the way, and `why` says which. Guarded. */
int way_resolve(const char *path, char **resolved, struct str *why);

#endif
