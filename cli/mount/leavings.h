/* The folders that mounts create, and what `dealfs clean` does with them. */
#ifndef CLI_MOUNT_LEAVINGS_H
#define CLI_MOUNT_LEAVINGS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct clean {
    bool dry_run, yes;
    bool caches;     /* also caches that are named by their states */
    bool aged;       /* --older was given */
    const char *ssd; /* a directory whose shards are also removed; NULL: none */
    uint64_t older;  /* nanoseconds; younger caches stay */
    int removed, failed, caches_removed, caches_kept;
    uint64_t bytes;   /* of the caches */
    struct str *said; /* gets the lines; NULL: they are printed */
};

/* Report and count it. */
void clean_removed(struct clean *clean, const char *path, const char *why);
void clean_failed(struct clean *clean, const char *path, const char *why);

void leavings_states(struct clean *clean);                       /* in $SLURM_TMPDIR, $TMPDIR, /var/tmp */
void leavings_memory(struct clean *clean);                       /* shards in /dev/shm */
int leavings_shards(struct clean *clean, const char *directory); /* 0, or -errno if it cannot be listed */

#endif
