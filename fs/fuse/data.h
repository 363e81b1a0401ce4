/* The data mount: the catalog's tree, read-only, and the files' bytes from the store.
 *
 * The server keeps no state towards the kernel: the node id of an inode is its number in the catalog, there are no file
 * handles, and lookup counts mean nothing. So any server can answer any request. */
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
    uint32_t readahead;  /* bytes that the kernel may read beyond what was asked for */
    const char *control; /* NULL: .dealfs is an empty directory to mount on; else the target of a symlink .dealfs */
    /* Guesses of listing.c: names asked for one by one since a listing began, and how many listings will tell all. */
    _Atomic uint32_t lookups, thorough;
};

/* READs of the page cache count as background requests. A quarter of the slots stays for the others. */
enum { DATA_BACKGROUND = 3072 };

extern const struct fuse_lowlevel_ops data_ops; /* userdata: struct data_mount */

/* Nothing changes while it is mounted, so the kernel may keep what it was told: 30 years, in seconds. */
#define DATA_FOREVER 1e9

/* .dealfs has a number that no catalog has, and is known before there is a catalog. */
#define DATA_CONTROL_NAME ".dealfs"
static inline fuse_ino_t data_control_ino(const struct data_mount *mount)
{
    (void)mount;
    return (fuse_ino_t)1 << 40;
}
/* Of .dealfs it is 0, as of the root: it is told before there is a catalog. */
static inline uint64_t data_generation(const struct data_mount *mount, fuse_ino_t ino)
{
    return ino == data_control_ino(mount) ? 0 : catalog_generation(mount->catalog, ino);
}
/* data-stat.c: attributes; and what .dealfs has of its own, when the rest is the root's. */
void data_control_stat(const struct data_mount *mount, struct stat *st);
int data_stat(const struct data_mount *mount, fuse_ino_t ino, struct stat *st);

#endif
