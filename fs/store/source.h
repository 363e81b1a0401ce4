/* The source as a layer: opens files beneath its root only, never through a symlink, and believes nothing that is
 * not as the catalog says: size, mtime and ctime are checked before and after each read, else -ESTALE. */
#ifndef FS_STORE_SOURCE_H
#define FS_STORE_SOURCE_H

#include "fs/catalog/catalog.h"
#include "fs/store/layer.h"
#include "fs/store/root.h"

struct source_counts {
    _Atomic uint64_t samples; /* files opened */
    _Atomic uint64_t bytes;   /* bytes read */
};

/* `root` is borrowed; `reopen` (or NULL) opens it again where it is lost. Errors are logged here, by path and cause, at
 * a bounded rate. A file that is gone or was replaced is -ESTALE, never -ENOENT. */
int source_create(const struct catalog *catalog, int root, root_open *reopen, void *user, struct layer **layer);
/* Before anything is read: count in here, and go on from what it has. */
void source_count_in(struct layer *layer, struct source_counts *counts);
void source_root(struct layer *layer, struct root_state *root);

/* For tests: a layer that passes on to `below` (which it then owns), after doing harm: see fs/store/fault.c for the
 * specification. -EINVAL, with a line in the log, for one that cannot be understood. */
int fault_create(const struct catalog *catalog, const char *specification, struct layer *below, struct layer **layer);

#endif
