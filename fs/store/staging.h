/* Staging: the memory in which a segment's values lie until the segment is stored.
 *
 * It is a mapped file without a name in the tier's own directory, so that it counts as the shard's memory (tmpfs) or as
 * page cache (SSD) and not as the server's, and is gone with the process however that ends. It is recycled from
 * segment to segment, so its pages are faulted in once. */
#ifndef FS_STORE_STAGING_H
#define FS_STORE_STAGING_H

#include "fs/store/index.h"

enum { STAGING_ALIGN = 64 }; /* of values */

struct staging_area {
    char *bytes;
    size_t size;
    struct value_place *place; /* SEGMENT_PLACES of them, written by the thread that has the room */
    struct segment *segment;   /* who has it; stock->lock. NULL: nobody */
};

/* Room is really there when this returns 0, so that touching it cannot fail. -ENOSPC, -EDQUOT, … */
int staging_create(const char *directory, size_t size, struct staging_area **staging);
void staging_destroy(struct staging_area *staging);

#endif
