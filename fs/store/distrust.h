/* The file `distrusted` in a tier's directory (FORMAT): versions of files that the next mount must not use, because the
 * bytes have changed although the version has not. */
#ifndef FS_STORE_DISTRUST_H
#define FS_STORE_DISTRUST_H

#include "fs/catalog/catalog.h"

enum { DISTRUST_MOST = 4096 }; /* with more, nothing of the tier is used */

struct distrusted {
    struct digest version;
    uint64_t scanned; /* not in the mount whose catalog is of this time: it may use the version; 0: each mount */
};

struct distrust {
    size_t count;
    struct distrusted list[DISTRUST_MOST];
};

/* `folder` is the path of the tier's directory. 0 or -errno. */
int distrust_read(const char *folder, struct distrust *distrust);
bool distrust_has(const struct distrust *distrust, const struct digest *version, uint64_t scanned);
int distrust_add(const char *folder, const struct distrusted *one);
void distrust_clear(const char *folder); /* the tier is empty */

#endif
