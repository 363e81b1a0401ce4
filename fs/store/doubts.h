/* Files that may have been rewritten although their new ctime is excused (fs/catalog/file-state.h): somebody changed
 * the mode, owner or links, and may have changed the bytes and restored the mtime. Before anything of such a file is
 * used, a cached value of it, drawn at random, is compared with the source.
 *
 *   none ──▶ told        another node says that the file has changed: nothing more is excused here
 *   none ──▶ stale       an excused file is to be read from the source, which has other bytes than the drawn value
 *   open ──▶ none        the scan excused it; the values are equal, or none is cached
 *   open ──▶ stale       they differ
 *
 * An open file is loaded as if no tier had it; the loader compares first. The data of a stale file is dropped, and its
 * reads fail until the next mount. */
#ifndef FS_STORE_DOUBTS_H
#define FS_STORE_DOUBTS_H

#include "fs/catalog/catalog.h"

#include <stdatomic.h>

enum doubt { DOUBT_NONE, DOUBT_TOLD, DOUBT_OPEN, DOUBT_STALE };

struct doubts {
    _Atomic uint8_t *file; /* enum doubt, per file */
    atomic_bool any;       /* ever; mostly there are none */
};

int doubts_init(struct doubts *doubts, const struct catalog *scanned);
void doubts_fini(struct doubts *doubts);

static inline enum doubt doubts_about(const struct doubts *d, uint32_t file)
{
    return atomic_load_explicit(&d->any, memory_order_acquire) ? (enum doubt)atomic_load(&d->file[file]) : DOUBT_NONE;
}

/* May its cached values not be used? */
static inline bool doubts_hide(const struct doubts *d, uint32_t file)
{
    return doubts_about(d, file) >= DOUBT_OPEN;
}

void doubts_change(struct doubts *doubts, uint32_t file, enum doubt from, enum doubt to); /* if it is `from` */

#endif
