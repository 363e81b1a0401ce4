/* The names of files below plan/ that were made, in a file of the state directory. After a crash, the next server finds
 * there what its readers have open.
 *
 * Only names are stored: each plan is made again, from the same layout and list, or fails. */
#ifndef FS_CONTROL_PLAN_NAMES_H
#define FS_CONTROL_PLAN_NAMES_H

#include "fs/base/hash.h"

struct named_plan {
    struct digest meaning, layout, key;
    uint64_t size;
    char *name; /* allocated with malloc */
};

/* Append a name; if there are many, the oldest are removed. Any thread, any process. 0 or -errno. */
int plan_names_add(const char *path, const struct named_plan *plan);
/* Find the last name for which `wanted` is true. -ENOENT, or another error. */
int plan_names_find(const char *path, bool (*wanted)(void *user, const struct digest *meaning), void *user,
                    struct named_plan *plan);

#endif
