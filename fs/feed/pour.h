/* Open a file of the data mount and ask for readahead: its READs are under way when this returns, and nothing of the
 * mount is open any more. */
#ifndef FS_FEED_POUR_H
#define FS_FEED_POUR_H

#include "fs/catalog/catalog.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { POUR_PIECE = 128 << 10 }; /* for one call: the kernel reads no more than the mount's readahead, silently */

struct pour {
    const struct catalog *catalog;
    unsigned minor; /* of the data mount's device: whatever else may stand there is left alone */
    size_t prefix;  /* of `path`, with its slash */
    char path[PATH_MAX];
    uint64_t files, bytes, failed;
};

int pour_init(struct pour *pour, const struct catalog *catalog, const char *mountpoint, unsigned minor);
/* Bytes of a file. -ENODEV: another file system stands there; others: this file cannot be opened. */
int pour_range(struct pour *pour, uint32_t file, uint64_t from, uint64_t bytes);
/* Has nobody else the file open, or mapped? The kernel grants a lease then, to its owner and to root: for others it
 * stays unknown, which is false. */
bool pour_unopened(struct pour *pour, uint32_t file);

#endif
