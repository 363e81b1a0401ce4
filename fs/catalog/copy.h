/* The mount's own copy of its catalog, at FD_CATALOG. It is independent of the state directory, so that every server of
 * the mount finds the same one. It is sealed memory or, if large, a file without a name. */
#ifndef FS_CATALOG_COPY_H
#define FS_CATALOG_COPY_H

#include <stdint.h>

/* Create an empty copy for `bytes` bytes; 0: unknown. `state`: descriptor of the state directory. */
int copy_make(int state, uint64_t bytes, int *copy);
struct catalog;
struct derived;

/* Fill it from a catalog's file, and open it; `catalog` NULL: only check it. -EBADMSG: not a catalog, or damaged;
 * -EFBIG: larger than `most`. After a failure it can be filled again. */
int copy_fill(int copy, int from, uint64_t most, struct catalog **catalog);
/* The same for the file of a derived catalog: */
int copy_derive(int copy, const struct derived *derived);
/* copies it unchanged. */
int copy_fill_derived(int copy, int from, uint64_t most);

#endif
