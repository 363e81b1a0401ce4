/* The map: for each part whether it is held, and where. 8 bytes a part, of which untouched pages cost nothing.
 *
 *   63    62     61…48   47………16   15…0
 *   held  tier   zero    segment  place of the part's first value
 *
 * An entry is published after everything it leads to, so a reader that sees one may follow it without a lock. An
 * entry never comes back: segments' numbers are not used twice while the shard is open. */
#ifndef FS_STORE_MAP_H
#define FS_STORE_MAP_H

#include "fs/store/shard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct map {
    _Atomic uint64_t *entry;
    uint64_t parts;
};

int map_init(struct map *map, uint64_t parts);
void map_fini(struct map *map);

static inline uint64_t entry_make(enum tier_name tier, uint32_t segment, uint32_t place)
{
    return 1ull << 63 | (uint64_t)tier << 62 | (uint64_t)segment << 16 | place;
}

static inline bool entry_held(uint64_t entry)
{
    return entry >> 63;
}

static inline enum tier_name entry_tier(uint64_t entry)
{
    return (enum tier_name)(entry >> 62 & 1);
}

static inline uint32_t entry_segment(uint64_t entry)
{
    return (uint32_t)(entry >> 16);
}

static inline uint32_t entry_place(uint64_t entry)
{
    return (uint32_t)(entry & 0xffff);
}

static inline uint64_t map_get(const struct map *map, uint64_t part)
{
    return part < map->parts ? atomic_load_explicit(&map->entry[part], memory_order_acquire) : 0;
}

/* One of several that try wins. 0 is "not held". */
static inline bool map_change(struct map *map, uint64_t part, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&map->entry[part], &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

#endif
