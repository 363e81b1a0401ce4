/* The contents of a stored segment, in terms of the current catalog: its index record with the current file numbers,
 * and a walk over its parts. */
#ifndef FS_STORE_CONTENTS_H
#define FS_STORE_CONTENTS_H

#include "fs/store/map.h"
#include "fs/store/match.h"
#include "fs/store/segment-file.h"

/* A run of a file that was removed or changed has NO_FILE. `match` is created when needed; the caller destroys it.
 * -EBADMSG: there is no valid index. */
#define NO_FILE UINT32_MAX
int contents_read(const struct segment_file *file, const struct catalog *c, struct match **match, struct index *index);

/* A part in the segment. The map may lead elsewhere, or say that the part is not cached. */
struct stored_part {
    uint32_t file, value, place, values;
    uint64_t part, entry;             /* entry: the map's value if the map leads to this place */
    const struct index_value *stored; /* of the part's first value */
};

struct contents_walk {
    const struct map *map;
    enum tier_name tier;
    uint32_t segment;
    const struct index *index;
    uint32_t run, at, before; /* position in the run; number of values in the runs before */
};
bool contents_next(struct contents_walk *walk, struct stored_part *part);

#endif
