/* Opens a file of the data mount and requests readahead. When it returns, the READs are in progress and nothing of the
 * mount is open. */
#ifndef FS_FEED_POUR_H
#define FS_FEED_POUR_H

#include "fs/catalog/catalog.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { POUR_PIECE = 128 << 10 }; /* per call: the kernel silently reads no more than the mount's readahead */

struct pour {
    const struct catalog *catalog;
    unsigned minor; /* of the data mount's device number: another filesystem in its place is not touched */
    size_t prefix;  /* length of the mountpoint in `path`, with its slash */
    char path[PATH_MAX];
    uint64_t files, bytes, failed;
};

int pour_init(struct pour *pour, const struct catalog *catalog, const char *mountpoint, unsigned minor);
/* Request bytes of a file. -ENODEV: another filesystem is mounted there; otherwise this file cannot be opened. */
int pour_range(struct pour *pour, uint32_t file, uint64_t from, uint64_t bytes);
/* Is it certain that no other process has the file open or mapped? The kernel grants a lease in that case, but only to
 * the file's owner and root; for others this is unknown: false. */
bool pour_unopened(struct pour *pour, uint32_t file);

#endif
