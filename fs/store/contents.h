/* What a stored segment contains, as today's catalog knows it: its index record with the files' numbers of today, and a
 * walk over the parts in it. */
#ifndef FS_STORE_CONTENTS_H
#define FS_STORE_CONTENTS_H

#include "fs/store/map.h"
#include "fs/store/match.h"
#include "fs/store/segment-file.h"

/* A run whose file is no more, or was changed, has NO_FILE. `match` is made when first needed; the caller destroys it.
 * -EBADMSG: there is no index to be believed. */
#define NO_FILE UINT32_MAX
int contents_read(const struct segment_file *file, const struct catalog *c, struct match **match, struct index *index);

/* A part of the segment, of which the map may know nothing or another place. */
struct stored_part {
    uint32_t file, value, place, values;
    uint64_t part, entry;             /* `entry`: what the map has if it leads here */
    const struct index_value *stored; /* of its first value */
};

struct contents_walk {
    const struct map *map;
    enum tier_name tier;
    uint32_t segment;
    const struct index *index;
    uint32_t run, at, before; /* in the run; values of the runs before it */
};
bool contents_next(struct contents_walk *walk, struct stored_part *part);

#endif
