/* A sample list as a file, described in FORMAT: a header and the numbers of the files. It is mapped, not read, so that
 * a list that was kept costs the server page cache and not memory. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/samples-list.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define LIST_MAGIC "DEALFSSL"
enum { LIST_VERSION = 1, LIST_ENDIAN = 0x01020304 };

struct list_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t count;
    uint64_t zero;
    struct digest catalog;
    struct digest checksum;
};
_Static_assert(sizeof(struct list_header) == 64, "list header");

static struct digest list_checksum(struct list_header header, const uint32_t *file)
{
    memset(&header.checksum, 0, sizeof header.checksum);
    return hash128(file, header.count * sizeof *file, hash64(&header, sizeof header, 0));
}

int samples_save(const struct samples *s, const char *path)
{
    size_t bytes = s->count * sizeof(uint32_t), n = sizeof(struct list_header) + bytes;
    CLEANUP_FREE char *image = malloc(n);
    if (!image)
        return -ENOMEM;
    struct list_header header = {
        .magic = LIST_MAGIC,
        .version = LIST_VERSION,
        .endian = LIST_ENDIAN,
        .count = s->count,
        .catalog = *catalog_digest(s->catalog),
    };
    uint32_t *file = (void *)(image + sizeof header);
    for (uint32_t i = 0; i < s->count; i++)
        file[i] = samples_file(s, i);
    header.checksum = list_checksum(header, file);
    memcpy(image, &header, sizeof header);
    return file_write_atomic(AT_FDCWD, path, image, n, 0600);
}

static int check_list(const struct catalog *c, const struct list_header *header, const uint32_t *file, size_t n)
{
    if (memcmp(header->magic, LIST_MAGIC, sizeof header->magic) != 0 || header->version != LIST_VERSION ||
        header->endian != LIST_ENDIAN || header->count > UINT32_MAX ||
        n != sizeof *header + header->count * sizeof *file)
        return -EBADMSG;
    struct digest checksum = list_checksum(*header, file);
    if (memcmp(&checksum, &header->checksum, sizeof checksum) != 0)
        return -EBADMSG;
    if (memcmp(&header->catalog, catalog_digest(c), sizeof header->catalog) != 0)
        return -ESTALE;
    for (uint64_t i = 0; i < header->count; i++)
        if (file[i] >= catalog_files(c))
            return -EBADMSG;
    return 0;
}

int samples_load(const struct catalog *c, const char *path, struct samples **out)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof(struct list_header))
        return -EBADMSG;
    size_t n = (size_t)st.st_size;
    void *map = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    const struct list_header *header = map;
    const uint32_t *file = (const void *)(header + 1);
    int error = check_list(c, header, file, n);
    if (error) {
        munmap(map, n);
        return error;
    }
    *out = samples_make_mapped(c, file, (uint32_t)header->count, map, n);
    return *out ? 0 : -ENOMEM;
}
