/* The names of files below plan/ that have been made, in a file of the state directory: a server that starts in the
 * place of one that died finds there what its readers have open.
 *
 * Only names are kept: each is planned again, from the same layout and list, or fails. */
#ifndef FS_CONTROL_PLAN_NAMES_H
#define FS_CONTROL_PLAN_NAMES_H

#include "fs/base/hash.h"

struct named_plan {
    struct digest meaning, layout, key;
    uint64_t size;
    char *name; /* malloc'ed */
};

/* Appends one; of many, the oldest are forgotten. Any thread, any process. 0 or -errno. */
int plan_names_add(const char *path, const struct named_plan *plan);
/* The last one for which `wanted` is true. -ENOENT, or another error. */
int plan_names_find(const char *path, bool (*wanted)(void *user, const struct digest *meaning), void *user,
                    struct named_plan *plan);

#endif
