/* Staging: the memory of a segment's values until the segment is stored.
 *
 * It is a mapped file without a name in the tier's directory. So it counts as memory of the shard (tmpfs) or as page
 * cache (SSD), not as the server's, and disappears when the process ends for any reason. It is reused for later
 * segments, so that its pages are faulted in once. */
#ifndef FS_STORE_STAGING_H
#define FS_STORE_STAGING_H

#include "fs/store/index.h"

enum { STAGING_ALIGN = 64 }; /* of values */

struct staging_area {
    char *bytes;
    size_t size;
    struct value_place *place; /* SEGMENT_PLACES elements, each written by the thread that has the room */
    struct segment *segment;   /* its user; NULL: none. Guarded by stock->lock */
};

/* After 0 the memory is reserved, so that access cannot fail. -ENOSPC, -EDQUOT, … */
int staging_create(const char *directory, size_t size, struct staging_area **staging);
void staging_destroy(struct staging_area *staging);

#endif
