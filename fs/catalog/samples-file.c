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
    uint64_t changed; /* the version of what the name stands for */
    struct digest catalog;
    struct digest checksum;
};
_Static_assert(sizeof(struct list_header) == 64, "list header");

static struct digest list_checksum(struct list_header header, const uint32_t *file)
{
    memset(&header.checksum, 0, sizeof header.checksum);
    return hash128(file, header.count * sizeof *file, hash64(&header, sizeof header, 0));
}

static int make_image(const struct samples *s, uint64_t version, char **out, size_t *n)
{
    size_t bytes = s->count * sizeof(uint32_t);
    char *image = malloc(sizeof(struct list_header) + bytes);
    if (!image)
        return -ENOMEM;
    struct list_header header = {
        .magic = LIST_MAGIC,
        .version = LIST_VERSION,
        .endian = LIST_ENDIAN,
        .count = s->count,
        .changed = version,
        .catalog = *catalog_digest(s->catalog),
    };
    uint32_t *file = (void *)(image + sizeof header);
    for (uint32_t i = 0; i < s->count; i++)
        file[i] = samples_file(s, i);
    header.checksum = list_checksum(header, file);
    memcpy(image, &header, sizeof header);
    *out = image;
    *n = sizeof header + bytes;
    return 0;
}

int samples_save(const struct samples *s, uint64_t version, const char *path)
{
    CLEANUP_FREE char *image = NULL;
    size_t n;
    int error = make_image(s, version, &image, &n);
    return error ? error : file_write_atomic(AT_FDCWD, path, image, n, 0600);
}

int samples_hold(const struct samples *s, uint64_t version, struct samples **out)
{
    CLEANUP_FREE char *image = NULL;
    size_t n;
    int error = make_image(s, version, &image, &n);
    if (error)
        return error;
    CLEANUP_CLOSE int fd = memfd_create("dealfs-samples", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    error = file_write_all(fd, image, n);
    return error ? error : samples_load_fd(s->catalog, fd, out, &version);
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

int samples_load_fd(const struct catalog *c, int fd, struct samples **out, uint64_t *version)
{
    struct stat st;
    if (fstat(fd, &st))
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
    *version = header->changed;
    *out = samples_make_mapped(c, file, (uint32_t)header->count, map, n);
    return *out ? 0 : -ENOMEM;
}

int samples_load(const struct catalog *c, const char *path, struct samples **out, uint64_t *version)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : samples_load_fd(c, fd, out, version);
}
