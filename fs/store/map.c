/* The memory of the map. Huge pages are refused: a data set of a few huge files has many parts of which few may be
 * held, and those are scattered. */
#include "fs/store/map.h"

#include <errno.h>
#include <sys/mman.h>

int map_init(struct map *map, uint64_t parts)
{
    size_t bytes = (parts ? parts : 1) * sizeof(uint64_t);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    *map = (struct map){memory, parts};
    return 0;
}

void map_fini(struct map *map)
{
    if (map->entry)
        munmap((void *)map->entry, (map->parts ? map->parts : 1) * sizeof(uint64_t));
    *map = (struct map){NULL, 0};
}
