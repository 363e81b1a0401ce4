/* The map: whether and where each part is cached; fs/wire/tier-share.h has the form of its entries. 8 bytes per part;
 * untouched pages cost nothing.
 *
 * An entry is published after everything it points to, so a reader may follow it without a lock. The same entry never
 * returns: segment numbers are not reused while the shard is open.
 *
 * The map is in memory that can be shared with the courier. Of shared memory, a page that is only read costs as much as
 * a written one. So a map that is large for its number of files is private. */
#ifndef FS_STORE_MAP_H
#define FS_STORE_MAP_H

#include "fs/store/tier-terms.h"
#include "fs/wire/tier-share.h"

#include <errno.h>
#include <stdatomic.h>

struct map {
    const struct catalog *catalog;
    const struct cut *parts;
    _Atomic uint64_t *entry; /* followed by the word `dropped`, which changes when a segment was dropped */
    int shared;              /* a descriptor of the memory; -1: it is private */
};

int map_init(struct map *map, const struct catalog *catalog, const struct cut *parts);
void map_fini(struct map *map);

static inline void map_note_dropped(struct map *map)
{
    atomic_fetch_add_explicit(&map->entry[map->parts->pieces], 1, memory_order_release);
}

/* The part with this value of a file. */
static inline uint64_t map_part(const struct map *map, uint32_t file, uint64_t value)
{
    return cut_at(map->parts, file, value * VALUE_BYTES);
}

static inline uint64_t map_get(const struct map *map, uint64_t part)
{
    return part < map->parts->pieces ? atomic_load_explicit(&map->entry[part], memory_order_acquire) : 0;
}

/* If several threads try, one succeeds. 0 means "not cached". */
static inline bool map_change(struct map *map, uint64_t part, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&map->entry[part], &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* Number of values of the part that begins with this one. */
static inline uint32_t part_values(const struct catalog *c, uint32_t file)
{
    return file_in_blocks(c, file) ? 1 : (uint32_t)file_values(c, file);
}

#endif
