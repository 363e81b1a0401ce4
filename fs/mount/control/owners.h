/* The owners of a list's samples, out of a directory: what plans are made of.
 *
 * A table is immutable and counted by reference. The last one is kept, since the requests of an epoch, and of the epochs
 * after it, are about the same list and directory. */
#ifndef FS_MOUNT_CONTROL_OWNERS_H
#define FS_MOUNT_CONTROL_OWNERS_H

#include "fs/catalog/samples.h"
#include "fs/mount/control/request.h"
#include "fs/plan/placement.h"
#include "fs/world/directory.h"

#include <pthread.h>
#include <stdatomic.h>

struct owner_table {
    atomic_int references;
    struct digest directory; /* zeros: there never was a world */
    struct digest list;      /* of the samples */
    struct owners owners;
    uint32_t me;             /* this node's number in that directory; `nodes`: it is not in it */
    char (*host)[NODE_HOST]; /* by node */
    uint16_t *memory;        /* of owners.of */
};

struct owner_cache {
    pthread_mutex_t lock; /* of last */
    struct owner_table *last;
};

void owner_cache_init(struct owner_cache *cache);
void owner_cache_fini(struct owner_cache *cache);

/* The table for a list and the directory `wanted` (NULL: the current one, or the last world's). A reference. -ESTALE:
 * that directory is neither the current one nor kept; -EINTR, -ENOMEM; `why` tells. */
int owners_find(struct control *control, struct samples *list, const struct digest *wanted, const struct asker *asker,
                struct owner_table **table, struct str *why);
void owners_put(struct owner_table *table);

#endif
