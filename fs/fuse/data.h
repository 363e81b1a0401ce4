/* The data mount: the catalog's tree, read-only, with the files' bytes from the store.
 *
 * The server keeps no state for the kernel: the node id of an inode is its number in the catalog, there are no file
 * handles, and lookup counts are ignored. So any server can answer any request. */
#ifndef FS_FUSE_DATA_H
#define FS_FUSE_DATA_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>

#include "fs/catalog/catalog.h"
#include "fs/fuse/reads.h"
#include "fs/store/store.h"

struct data_mount {
    const struct catalog *catalog;
    struct store *store;
    struct reads *reads;
    uint32_t readahead;  /* bytes that the kernel may read ahead */
    const char *control; /* NULL: .dealfs is an empty directory to mount on; else it is a symlink with this target */
    /* For listing.c: single lookups since the last listing began; how many listings will include attributes. */
    _Atomic uint32_t lookups, thorough;
};

/* READs of the page cache count as background requests. A quarter of the slots remains for others. */
enum { DATA_BACKGROUND = 3072 };

extern const struct fuse_lowlevel_ops data_ops; /* userdata: struct data_mount */

/* Nothing changes while mounted, so the kernel may cache everything for 30 years, in seconds. */
#define DATA_FOREVER 1e9

/* .dealfs has a number that no catalog uses. It is known before there is a catalog. */
#define DATA_CONTROL_NAME ".dealfs"
static inline fuse_ino_t data_control_ino(const struct data_mount *mount)
{
    (void)mount;
    return (fuse_ino_t)1 << 40;
}
/* 0 for .dealfs and the root: they are known before there is a catalog. */
static inline uint64_t data_generation(const struct data_mount *mount, fuse_ino_t ino)
{
    return ino == data_control_ino(mount) ? 0 : catalog_generation(mount->catalog, ino);
}
/* data-stat.c: attributes; and the attributes of .dealfs that differ from the root's. */
void data_control_stat(const struct data_mount *mount, struct stat *st);
int data_stat(const struct data_mount *mount, fuse_ino_t ino, struct stat *st);

#endif
