/* The source as a layer. It opens files only beneath its root and never through a symlink, and checks size, mtime and
 * ctime before and after each read: else -ESTALE. */
#ifndef FS_STORE_SOURCE_H
#define FS_STORE_SOURCE_H

#include "fs/catalog/catalog.h"
#include "fs/store/layer.h"
#include "fs/store/modes.h"
#include "fs/store/root.h"

struct source_counts {
    _Atomic uint64_t samples; /* files opened */
    _Atomic uint64_t bytes;   /* bytes read */
};

/* `root` is borrowed. `reopen` (or NULL) opens it again if it is lost. Errors are logged here with path and cause, at a
 * limited rate. A file that was removed or replaced is -ESTALE, never -ENOENT. */
int source_create(const struct catalog *catalog, int root, root_open *reopen, void *user, struct layer **layer);
/* Before anything is read: continue counting in this memory. */
void source_count_in(struct layer *layer, struct source_counts *counts);

/* Of a file that is excused (fs/catalog/file-state.h), this gives a cached value before its bytes are read: 0, and the
 * value is compared; -ENOENT: there is none. Other errors: it must not be read now. `differs`: the source has other
 * bytes. */
struct source_witness {
    void *user;
    int (*draw)(void *user, uint32_t file, struct span *span, struct answer *answer);
    void (*differs)(void *user, uint32_t file);
};
void source_set_witness(struct layer *layer, const struct source_witness *witness); /* before anything is read */

/* Before anything is read: note the modes of files that are opened. NULL: do not. */
void source_note_modes(struct layer *layer, struct modes *modes);

void source_root(struct layer *layer, struct root_state *root);

/* For tests: a layer in front of `below` (which it then owns) that injects faults, as specified in fs/store/fault.c.
 * -EINVAL, with a line in the log: the specification is invalid. */
int fault_create(const struct catalog *catalog, const char *specification, struct layer *below, struct layer **layer);

#endif
