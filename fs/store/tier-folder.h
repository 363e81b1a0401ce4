/* A tier's directory: used by one process at a time, and accessed by descriptor. */
#ifndef FS_STORE_TIER_FOLDER_H
#define FS_STORE_TIER_FOLDER_H

#include "fs/store/tier-terms.h"

struct tier_folder {
    int fd, lock;  /* -1: not open yet */
    char path[32]; /* of the directory's descriptor, so that it stays valid */
};

void folder_init(struct tier_folder *f);
void folder_fini(struct tier_folder *f);
/* Lock and prepare the directory; after a failure it may be tried again. -EBUSY: another process has it. -ENOTSUP: a
 * newer version of dealfs has stored data there. `reason` explains errors that need words. Removes data of older
 * versions. */
int folder_take(struct tier_folder *f, const struct tier_config *config, const char **reason);
void folder_clean(const struct tier_folder *f); /* removes files that were never ingested */

#endif
