/* The mount's own copy of its catalog, at FD_CATALOG: whatever becomes of the state directory, every server of the
 * mount finds the same one. It is sealed memory; a large one is a file without a name, and not worth that much
 * memory. */
#ifndef FS_CATALOG_COPY_H
#define FS_CATALOG_COPY_H

#include <stdint.h>

/* An empty one, for a catalog of `bytes` bytes; 0: not known yet. `state` is the state directory. */
int copy_make(int state, uint64_t bytes, int *copy);
/* From a catalog's file. -EBADMSG: that is none, or damaged; -EFBIG: larger than `most`. After a failure it can be
 * filled again. */
int copy_fill(int copy, int from, uint64_t most);
/* The same from what it is derived of. */
struct derived;
int copy_derive(int copy, const struct derived *derived);
/* From a file that tells what a catalog is derived of, as it is. */
int copy_fill_derived(int copy, int from, uint64_t most);

#endif
