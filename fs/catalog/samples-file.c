/* A sample list as a file, described in FORMAT: a header, then file numbers or records. It is mapped, so that a stored
 * list uses the page cache, not the server's memory. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/samples-inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define LIST_MAGIC "DEALFSSL"
enum { LIST_VERSION = 2, LIST_ENDIAN = 0x01020304 };

struct list_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t count;
    uint64_t changed; /* the version of the name's content */
    struct digest catalog;
    struct digest checksum;
    uint32_t records; /* enum: the kind of content */
    uint32_t zero;
    union {
        struct record_traits traits;
        struct digest of; /* for costs: the list that they belong to */
    };
};
enum { LIST_FILES, LIST_RECORDS, LIST_COSTS };
_Static_assert(sizeof(struct list_header) == SAMPLES_HEADER, "list header");

static struct digest list_checksum(struct list_header header, const void *content, size_t n)
{
    memset(&header.checksum, 0, sizeof header.checksum);
    return hash128(content, n, hash64(&header, sizeof header, 0));
}

/* A list to be written; `numbers` are computed if the list has none. */
struct image {
    struct list_header header;
    struct iovec part[2];
    uint32_t *numbers;
};

static int image_make(const struct samples *s, uint64_t version, struct image *image)
{
    const struct samples_content *content = &s->content;
    size_t bytes = content->count * (content->record ? sizeof *content->record : sizeof *content->file);
    const void *array = content->record ? (const void *)content->record : content->cost ? content->cost : content->file;
    *image = (struct image){.header = {.magic = LIST_MAGIC,
                                       .version = LIST_VERSION,
                                       .endian = LIST_ENDIAN,
                                       .count = content->count,
                                       .changed = version,
                                       .catalog = *catalog_digest(s->catalog),
                                       .records = content->record ? LIST_RECORDS
                                                  : content->cost ? LIST_COSTS
                                                                  : LIST_FILES,
                                       .traits = content->traits}};
    if (content->cost)
        image->header.of = content->of;
    if (!array) {
        array = image->numbers = malloc(bytes + 1);
        if (!array)
            return -ENOMEM;
        for (uint32_t i = 0; i < content->count; i++)
            image->numbers[i] = samples_file(s, i);
    }
    image->header.checksum = list_checksum(image->header, array, bytes);
    image->part[0] = (struct iovec){&image->header, sizeof image->header};
    image->part[1] = (struct iovec){(void *)array, bytes};
    return 0;
}

int samples_save(const struct samples *s, uint64_t version, const char *path)
{
    struct image image;
    int error = image_make(s, version, &image);
    if (!error)
        error = file_write_atomic_parts(AT_FDCWD, path, image.part, 2, 0600);
    free(image.numbers);
    return error;
}

int samples_hold(const struct samples *s, uint64_t version, struct samples **out)
{
    CLEANUP_CLOSE int fd = memfd_create("dealfs-samples", MFD_CLOEXEC);
    struct image image;
    if (fd < 0)
        return -errno;
    int error = image_make(s, version, &image);
    for (int i = 0; i < 2 && !error; i++)
        error = file_write_all(fd, image.part[i].iov_base, image.part[i].iov_len);
    free(image.numbers);
    return error ? error : samples_load_fd(s->catalog, fd, out, &version);
}

static bool is_whole(const struct catalog *c, const struct samples_content *content)
{
    bool whole = true;
    if (content->cost)
        return true;
    for (uint32_t i = 0; i < content->count && whole; i++)
        whole = content->record ? record_lies_in(c, &content->record[i]) : content->file[i] < catalog_files(c);
    return whole;
}

/* `n`: length of the file. */
static int check_list(const struct catalog *c, const struct list_header *header, size_t n,
                      struct samples_content *content)
{
    const void *array = header + 1;
    size_t each = header->records == LIST_RECORDS ? sizeof *content->record : sizeof *content->file;
    if (memcmp(header->magic, LIST_MAGIC, sizeof header->magic) != 0 || header->endian != LIST_ENDIAN)
        return -EBADMSG;
    if (header->version != LIST_VERSION)
        return -EPROTO;
    if (header->count > UINT32_MAX || n != sizeof *header + header->count * each)
        return -EBADMSG;
    struct digest checksum = list_checksum(*header, array, n - sizeof *header);
    if (memcmp(&checksum, &header->checksum, sizeof checksum) != 0)
        return -EBADMSG;
    if (!digest_equal(&header->catalog, catalog_digest(c)))
        return -ESTALE;
    *content = (struct samples_content){.count = (uint32_t)header->count};
    if (header->records == LIST_COSTS) {
        content->cost = array;
        content->of = header->of;
        return 0;
    }
    content->traits = header->traits;
    if (header->records == LIST_RECORDS)
        content->record = array;
    else
        content->file = array;
    return header->records <= LIST_RECORDS && header->traits.format <= RECORDS_FIXED && is_whole(c, content) ? 0
                                                                                                             : -EBADMSG;
}

int samples_load_fd(const struct catalog *c, int fd, struct samples **out, uint64_t *version)
{
    struct samples_content content;
    void *map;
    size_t n;
    int error = file_map(fd, sizeof(struct list_header), &map, &n);
    if (error)
        return error;
    const struct list_header *header = map;
    error = check_list(c, header, n, &content);
    if (error) {
        munmap(map, n);
        return error;
    }
    *version = header->changed;
    *out = samples_make_mapped(c, &content, map, n);
    return *out ? 0 : -ENOMEM;
}

int samples_load(const struct catalog *c, const char *path, struct samples **out, uint64_t *version)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : samples_load_fd(c, fd, out, version);
}
