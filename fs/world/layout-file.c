/* The layout's file. It is written together with its hashes. A file that is opened is checked completely before use. */
#include "fs/world/layout-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { ID_LENGTH = NODE_ID - 1 };

uint64_t layout_length(uint64_t extents, uint32_t nodes, uint32_t groups)
{
    uint64_t owners;
    if (__builtin_mul_overflow(extents, 2 * (uint64_t)groups, &owners) || owners > SIZE_MAX / 2)
        return 0;
    return sizeof(struct layout_header) + (uint64_t)nodes * sizeof(struct layout_record) + owners;
}

uint64_t layout_most(const struct extents *extents)
{
    return layout_length(extents_count(extents), NODES_MOST, GROUPS_MOST);
}

/* What the nodes of a world must agree on: neither host names nor the room that led to this layout. */
struct digest layout_digest_of(const void *image)
{
    const struct layout_header *header = image;
    const struct layout_record *record = (const void *)(header + 1);
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

struct digest layout_checksum_of(const void *image)
{
    struct layout_header header;
    memcpy(&header, image, sizeof header);
    memset(&header.checksum, 0, sizeof header.checksum);
    return hash128((const char *)image + sizeof header, header.length - sizeof header,
                   hash64(&header, sizeof header, 0));
}

/* --- checks --- */

static bool check_header(const struct layout_header *h, size_t n)
{
    static const uint8_t zero[sizeof h->zero];
    if (n < sizeof *h || memcmp(h->magic, LAYOUT_MAGIC, sizeof h->magic) != 0 || h->version != LAYOUT_VERSION ||
        h->endian != LAYOUT_ENDIAN || h->length != n || memcmp(h->zero, zero, sizeof zero) != 0)
        return false;
    return h->nodes > 0 && h->nodes <= NODES_MOST && h->groups > 0 && h->groups <= h->nodes &&
           layout_length(h->extents, h->nodes, h->groups) == n;
}

static bool check_hashes(const void *image)
{
    const struct layout_header *h = image;
    struct digest digest = layout_digest_of(image), checksum = layout_checksum_of(image);
    return memcmp(&digest, &h->digest, sizeof digest) == 0 && memcmp(&checksum, &h->checksum, sizeof checksum) == 0;
}

bool layout_is_id(const char *id)
{
    for (int i = 0; i < ID_LENGTH; i++)
        if (!isxdigit((unsigned char)id[i]))
            return false;
    return id[ID_LENGTH] == '\0';
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

static bool check_record(const struct layout_record *r)
{
    return is_text(r->id, sizeof r->id, NODE_ID) && is_text(r->host, sizeof r->host, NODE_HOST) && r->zero == 0 &&
           layout_is_id(r->id);
}

static bool check_owners(const struct layout *l)
{
    const struct layout_header *h = l->header;
    const uint16_t *owner = l->owner;
    for (uint32_t group = 0; group < h->groups; group++) {
        uint32_t first = node_first(group, h->nodes, h->groups),
                 nodes = node_first(group + 1, h->nodes, h->groups) - first;
        for (uint64_t extent = 0; extent < h->extents; extent++, owner++)
            if (*owner != NO_OWNER && *owner - first >= nodes)
                return false;
    }
    return true;
}

static bool check_body(const struct layout *l, const struct extents *extents)
{
    for (uint32_t i = 0; i < l->header->nodes; i++)
        if (!check_record(&l->record[i]))
            return false;
    return l->header->extents == extents_count(extents) && check_owners(l);
}

/* --- from an image to a layout --- */

static void count_owned(struct layout *l, const struct extents *extents)
{
    for (uint64_t extent = 0; extent < l->header->extents; extent++) {
        uint64_t cost = extents_cost(extents, extent);
        for (uint32_t group = 0; group < l->header->groups; group++) {
            uint32_t node = layout_owner(l, group, extent);
            if (node == NO_OWNER)
                l->unowned++;
            else
                l->owned[node] += cost;
        }
    }
}

int layout_from_image(const void *image, size_t n, const struct extents *extents, struct layout **out)
{
    struct layout *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->refs = 1;
    l->header = image;
    l->record = (const void *)(l->header + 1);
    l->owner = (const void *)(l->record + l->header->nodes);
    l->length = n;
    l->owned = calloc(l->header->nodes, sizeof *l->owned);
    int error = !l->owned ? -ENOMEM : check_body(l, extents) ? 0 : -EBADMSG;
    if (error) {
        layout_close(l);
        return error;
    }
    count_owned(l, extents);
    *out = l;
    return 0;
}

int layout_from_memory(const void *image, size_t n, const struct catalog *catalog, struct layout **out)
{
    const struct layout_header *header = image;
    if (!check_header(header, n) || memcmp(&header->catalog, catalog_digest(catalog), sizeof header->catalog) != 0 ||
        !check_hashes(image))
        return -EBADMSG;
    struct extents *extents;
    int error = extents_create(catalog, &extents);
    if (error)
        return error;
    error = layout_from_image(image, n, extents, out);
    extents_destroy(extents);
    return error;
}

/* --- files --- */

int layout_save(const struct layout *l, const char *path)
{
    return file_write_atomic(AT_FDCWD, path, l->header, l->length, 0600);
}

int layout_open_bytes(void *bytes, size_t n, const struct catalog *catalog, struct layout **out)
{
    int error = layout_from_memory(bytes, n, catalog, out);
    if (!error)
        (*out)->image = bytes;
    return error;
}

size_t layout_bytes(const struct layout *l, uint64_t from, void *to, size_t n, uint64_t *length)
{
    *length = l->length;
    if (from >= l->length)
        return 0;
    size_t some = l->length - from < n ? l->length - from : n;
    memcpy(to, (const char *)l->header + from, some);
    return some;
}

int layout_share(const struct layout *l)
{
    return file_memory("dealfs-layout", l->header, l->length);
}

int layout_open(const char *path, const struct catalog *catalog, struct layout **out)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : layout_open_fd(fd, catalog, out);
}

int layout_open_fd(int fd, const struct catalog *catalog, struct layout **out)
{
    void *map;
    size_t n;
    int error = file_map(fd, sizeof(struct layout_header), &map, &n);
    if (error)
        return error;
    error = layout_from_memory(map, n, catalog, out);
    if (error)
        munmap(map, n);
    else
        (*out)->map = map;
    return error;
}

struct layout *layout_get(struct layout *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void layout_close(struct layout *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    KEEP_ERRNO;
    if (l->map)
        munmap(l->map, l->length);
    free(l->image);
    free(l->owned);
    free(l);
}
