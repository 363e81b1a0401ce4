/* The directory's file: made to fit its hashes, and believed in nothing before all of it was looked at. */
#include "fs/world/directory-format.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { ID_LENGTH = NODE_ID - 1 };

uint64_t directory_length(uint64_t extents, uint32_t nodes, uint32_t groups)
{
    uint64_t owners;
    if (__builtin_mul_overflow(extents, 2 * (uint64_t)groups, &owners) || owners > SIZE_MAX / 2)
        return 0;
    return sizeof(struct directory_header) + (uint64_t)nodes * sizeof(struct directory_record) + owners;
}

/* What the nodes of a world must agree on: not what their hosts are called, nor how much room led to this. */
struct digest directory_digest_of(const void *image)
{
    const struct directory_header *header = image;
    const struct directory_record *record = (const void *)(header + 1);
    const void *owner = record + header->nodes;
    struct {
        struct digest catalog;
        uint64_t extents;
        uint32_t nodes, groups;
    } begin = {header->catalog, header->extents, header->nodes, header->groups};
    uint64_t seed = hash64(&begin, sizeof begin, 0);
    for (uint32_t i = 0; i < header->nodes; i++)
        seed = hash64(record[i].id, ID_LENGTH, seed);
    return hash128(owner, header->extents * header->groups * sizeof(uint16_t), seed);
}

struct digest directory_checksum_of(const void *image)
{
    struct directory_header header;
    memcpy(&header, image, sizeof header);
    memset(&header.checksum, 0, sizeof header.checksum);
    return hash128((const char *)image + sizeof header, header.length - sizeof header,
                   hash64(&header, sizeof header, 0));
}

/* ---- checks ---- */

static bool check_header(const struct directory_header *h, size_t n)
{
    static const uint8_t zero[sizeof h->zero];
    if (n < sizeof *h || memcmp(h->magic, DIRECTORY_MAGIC, sizeof h->magic) != 0 || h->version != DIRECTORY_VERSION ||
        h->endian != DIRECTORY_ENDIAN || h->length != n || memcmp(h->zero, zero, sizeof zero) != 0)
        return false;
    return h->nodes > 0 && h->nodes <= NODES_MOST && h->groups > 0 && h->groups <= h->nodes &&
           directory_length(h->extents, h->nodes, h->groups) == n;
}

static bool check_hashes(const void *image)
{
    const struct directory_header *h = image;
    struct digest digest = directory_digest_of(image), checksum = directory_checksum_of(image);
    return memcmp(&digest, &h->digest, sizeof digest) == 0 && memcmp(&checksum, &h->checksum, sizeof checksum) == 0;
}

static bool is_text(const char *field, size_t n, size_t most)
{
    size_t length = strnlen(field, n);
    if (length >= most)
        return false;
    for (size_t i = length; i < n; i++)
        if (field[i] != '\0')
            return false;
    return true;
}

static bool check_record(const struct directory_record *r)
{
    if (!is_text(r->id, sizeof r->id, NODE_ID) || !is_text(r->host, sizeof r->host, NODE_HOST) || r->zero != 0)
        return false;
    for (int i = 0; i < ID_LENGTH; i++)
        if (!isxdigit((unsigned char)r->id[i]))
            return false;
    return true;
}

static bool check_owners(const struct directory *d)
{
    const struct directory_header *h = d->header;
    const uint16_t *owner = d->owner;
    for (uint32_t group = 0; group < h->groups; group++)
        for (uint64_t extent = 0; extent < h->extents; extent++, owner++)
            if (*owner != NO_OWNER && (*owner >= h->nodes || directory_group(d, *owner) != group))
                return false;
    return true;
}

static bool check(const struct directory *d, const struct extents *extents)
{
    for (uint32_t i = 0; i < d->header->nodes; i++)
        if (!check_record(&d->record[i]))
            return false;
    return d->header->extents == extents_count(extents) && check_owners(d);
}

/* ---- from an image to a directory ---- */

static void count_owned(struct directory *d, const struct extents *extents)
{
    for (uint64_t extent = 0; extent < d->header->extents; extent++) {
        uint64_t cost = extents_cost(extents, extent);
        for (uint32_t group = 0; group < d->header->groups; group++) {
            uint32_t node = directory_owner(d, group, extent);
            if (node == NO_OWNER) {
                d->unowned++;
                continue;
            }
            d->owned[node].bytes += cost;
            d->owned[node].extents++;
        }
    }
}

static struct directory *begin(const void *image, size_t n)
{
    struct directory *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->header = image;
    d->record = (const void *)(d->header + 1);
    d->owner = (const void *)(d->record + d->header->nodes);
    d->length = n;
    d->node = calloc(d->header->nodes, sizeof *d->node);
    d->owned = calloc(d->header->nodes, sizeof *d->owned);
    if (d->node && d->owned)
        return d;
    directory_close(d);
    return NULL;
}

static void finish(struct directory *d, const struct extents *extents)
{
    for (uint32_t i = 0; i < d->header->nodes; i++) {
        memcpy(d->node[i].id, d->record[i].id, NODE_ID);
        memcpy(d->node[i].host, d->record[i].host, NODE_HOST);
        d->node[i].capacity = d->record[i].capacity;
    }
    count_owned(d, extents);
}

int directory_from_image(const void *image, size_t n, const struct extents *extents, struct directory **out)
{
    struct directory *d = begin(image, n);
    if (!d)
        return -ENOMEM;
    if (!check(d, extents)) {
        directory_close(d);
        return -EBADMSG;
    }
    finish(d, extents);
    *out = d;
    return 0;
}

int directory_from_memory(const void *image, size_t n, const struct catalog *catalog, struct directory **out)
{
    const struct directory_header *header = image;
    if (!check_header(header, n) || memcmp(&header->catalog, catalog_digest(catalog), sizeof header->catalog) != 0 ||
        !check_hashes(image))
        return -EBADMSG;
    struct extents *extents;
    int error = extents_create(catalog, &extents);
    if (error)
        return error;
    error = directory_from_image(image, n, extents, out);
    extents_destroy(extents);
    return error;
}

/* ---- files ---- */

int directory_save(const struct directory *d, const char *path)
{
    return file_write_atomic(AT_FDCWD, path, d->header, d->length, 0600);
}

int directory_open(const char *path, const struct catalog *catalog, struct directory **out)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct directory_header))
        return -EBADMSG;
    size_t n = (size_t)st.st_size;
    void *map = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    int error = directory_from_memory(map, n, catalog, out);
    if (error)
        munmap(map, n);
    else
        (*out)->map = map;
    return error;
}

void directory_close(struct directory *d)
{
    if (!d)
        return;
    int saved = errno;
    if (d->map)
        munmap(d->map, d->length);
    free(d->image);
    free(d->owned);
    free(d->node);
    free(d);
    errno = saved;
}
