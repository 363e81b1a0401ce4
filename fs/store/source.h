/* The source as a layer: opens files beneath its root only, never through a symlink, and believes nothing that is
 * not as the catalog says: size and mtime are checked before and after each read, else -ESTALE. */
#ifndef FS_STORE_SOURCE_H
#define FS_STORE_SOURCE_H

#include "fs/store/layer.h"

struct source_counts {
    uint64_t samples; /* files opened */
    uint64_t bytes;   /* bytes read */
};

/* `root` is borrowed. Errors are logged here, by path and cause, at a bounded rate. A file that is gone or was replaced
 * is -ESTALE, never -ENOENT. */
int source_create(const struct catalog *catalog, int root, struct layer **layer);
void source_counts(struct layer *layer, struct source_counts *counts);

/* For tests: a layer that passes on to `below` (which it then owns), after doing harm: see fs/store/fault.c for the
 * specification. -EINVAL, with a line in the log, for one that cannot be understood. */
int fault_create(const struct catalog *catalog, const char *specification, struct layer *below, struct layer **layer);

#endif
