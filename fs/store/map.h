/* The map: whether and where each part is cached. 8 bytes per part; untouched pages cost nothing.
 *
 *   63    62     61…48   47………16   15…0
 *   held  tier   zero    segment  place of the part's first value
 *
 * An entry is published after everything it points to, so a reader may follow it without a lock. The same entry never
 * returns: segment numbers are not reused while the shard is open. */
#ifndef FS_STORE_MAP_H
#define FS_STORE_MAP_H

#include "fs/store/tier-terms.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

struct map {
    const struct catalog *catalog;
    const struct cut *parts;
    _Atomic uint64_t *entry;
};

static inline size_t map_bytes(const struct map *map)
{
    return (map->parts->pieces + !map->parts->pieces) * sizeof *map->entry;
}

/* Without huge pages: in a dataset of a few huge files, the cached parts may be few and scattered. */
static inline int map_init(struct map *map, const struct catalog *catalog, const struct cut *parts)
{
    *map = (struct map){catalog, parts, NULL};
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    madvise(memory, map_bytes(map), MADV_NOHUGEPAGE);
    map->entry = memory;
    return 0;
}

static inline void map_fini(struct map *map)
{
    if (map->entry)
        munmap((void *)map->entry, map_bytes(map));
    map->entry = NULL;
}

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
