#include "fs/store/map.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(TIER_RAM == 0, "fs/wire/tier-share.h says so");

enum { SHARED_BYTES = 8 << 20, SHARED_PER_FILE = 16 }; /* maximum bytes of a shared map, and more per file */

static size_t map_bytes(const struct map *map)
{
    return (map->parts->pieces + 1) * sizeof *map->entry;
}

/* With strict accounting, the kernel promises no memory for shared pages before they are written: then writing one may
 * raise SIGBUS. */
static bool kernel_is_strict(void)
{
    CLEANUP_STR struct str mode = STR_INIT;
    return file_read(AT_FDCWD, "/proc/sys/vm/overcommit_memory", 16, &mode) || mode.data[0] == '2';
}

/* A descriptor of new memory of this size, or -1. */
static int make_memory(size_t bytes)
{
    if (kernel_is_strict())
        return -1;
    CLEANUP_CLOSE int fd = memfd_create("dealfs-map", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -1;
    return steal_fd(fd);
}

/* Without huge pages: in a dataset of a few huge files, the cached parts may be few and scattered. */
int map_init(struct map *map, const struct catalog *catalog, const struct cut *parts)
{
    *map = (struct map){catalog, parts, NULL, -1};
    size_t bytes = map_bytes(map);
    if (bytes <= SHARED_BYTES + (uint64_t)catalog_files(catalog) * SHARED_PER_FILE)
        map->shared = make_memory(bytes);
    int flags = map->shared < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, map->shared, 0);
    if (memory == MAP_FAILED) {
        int error = -errno;
        map_fini(map);
        return error;
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    map->entry = memory;
    return 0;
}

void map_fini(struct map *map)
{
    if (!map->parts) /* map_init was not called */
        return;
    if (map->entry)
        munmap((void *)map->entry, map_bytes(map));
    if (map->shared >= 0)
        close(map->shared);
    *map = (struct map){.shared = -1};
}
