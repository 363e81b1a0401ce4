/* A tier's directory: had by one process at a time, and gone into by a descriptor. */
#ifndef FS_STORE_TIER_FOLDER_H
#define FS_STORE_TIER_FOLDER_H

#include "fs/store/tier-terms.h"

struct tier_folder {
    int fd, lock;  /* -1: not yet */
    char path[32]; /* of the directory, whatever its own path leads to by now */
};

void folder_init(struct tier_folder *f);
void folder_fini(struct tier_folder *f);
/* Until 0 it may be tried again. -EBUSY: another process has it. -ENOTSUP: a newer version of dealfs has stored there.
 * `reason` says it in words where the error does not. What older versions stored is removed. */
int folder_take(struct tier_folder *f, const struct tier_config *config, const char **reason);
void folder_clean(const struct tier_folder *f); /* of files that were never ingested */

#endif
