/* May RocksDB open this file? It takes some bytes for good without a checksum, such as the footer's, and aborts the
 * process where no first or last entry can be read. So what it reads of a segment's file by itself is checked first:
 *
 *   data blocks │ index │ properties │ metaindex │ footer
 *
 * After each block stand its type (one byte) and a checksum of both (4 bytes). The metaindex leads to the properties,
 * the index to the data blocks, which follow each other from the file's beginning on.
 *
 * The footer, of 53 bytes: the kind of checksums (1); where the metaindex and the index lie (four varints); zeros up to
 * byte 41; the form (4); a magic number (8). */
#include "fs/store/rocks-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/hash.h"

#include <string.h>
#include <sys/stat.h>

enum {
    FOOTER = 53,
    FOOTER_HANDLES = 1,
    FOOTER_FORM = 41,
    FOOTER_MAGIC = 45,
    TRAILER = 5,
    TAIL = 64 << 10, /* read at once: the footer, and mostly all but the data */
};
#define MAGIC 0x88e241b785f4cff7u

struct table {
    int fd;
    uint64_t bytes, from; /* the tail begins at `from` */
    const char *tail;
};

/* Where a block lies, without its trailer. */
struct block_handle {
    uint64_t offset, size;
};

/* What is left of some bytes. */
struct unread {
    const char *at, *end;
};

static uint32_t load32(const char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return le32toh(v);
}

static uint64_t load64(const char *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return le64toh(v);
}

static bool scan_varint(struct unread *s, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        uint64_t byte = (unsigned char)*s->at++;
        *value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool scan_handle(struct unread *s, struct block_handle *h)
{
    return scan_varint(s, &h->offset) && scan_varint(s, &h->size);
}

static bool scan_skip(struct unread *s, uint64_t n)
{
    if (n > (uint64_t)(s->end - s->at))
        return false;
    s->at += n;
    return true;
}

/* RocksDB's way to a checksum: the block's, changed by the byte of its type. */
static uint32_t block_sum(const char *block, uint64_t size)
{
    return (uint32_t)hash64(block, size, 0) ^ (unsigned char)block[size] * 0x6b9083d9u;
}

/* The block's bytes, which are right: in the tail, or in `memory`, which the caller frees. */
static int read_block(const struct table *t, const struct block_handle *h, char **memory, const char **block)
{
    if (h->size > t->bytes || h->offset > t->bytes - h->size || t->bytes - h->size - h->offset < TRAILER)
        return -EBADMSG;
    int error = 0;
    uint64_t end = h->offset + h->size + TRAILER;
    *block = NULL;
    if (h->offset >= t->from) {
        *block = t->tail + (h->offset - t->from);
    } else {
        *memory = rocks_buffer(end - h->offset);
        *block = *memory ? rocks_read(t->fd, h->offset, end, *memory, &error) : NULL;
    }
    if (!*block)
        return error ? error : -ENOMEM;
    return block_sum(*block, h->size) == load32(*block + h->size + 1) ? 0 : -EBADMSG;
}

static int check_block(const struct table *t, const struct block_handle *h)
{
    CLEANUP_FREE char *memory = NULL;
    const char *block;
    return read_block(t, h, &memory, &block);
}

/* The entries of a block, which end where its restarts begin: at their end stands how many there are. */
static bool scan_block(struct unread *s, const char *block, uint64_t size)
{
    uint64_t restarts = size >= 4 ? load32(block + size - 4) : 0;
    *s = (struct unread){block, block + size - 4 * (restarts + 1)};
    return restarts && size >= 4 * (restarts + 1);
}

/* Three numbers (bytes of the key shared with the one before, its other bytes, the value's length), the key, the value:
 * where a block lies. */
static int check_metaindex(const struct table *t, const struct block_handle *where)
{
    CLEANUP_FREE char *memory = NULL;
    const char *block;
    struct unread s = {NULL, NULL};
    uint64_t shared, rest, length;
    int error = read_block(t, where, &memory, &block);
    if (!error && !scan_block(&s, block, where->size))
        error = -EBADMSG;
    while (!error && s.at < s.end) {
        struct block_handle h;
        if (!scan_varint(&s, &shared) || !scan_varint(&s, &rest) || !scan_varint(&s, &length) || !scan_skip(&s, rest) ||
            !scan_handle(&s, &h))
            return -EBADMSG;
        error = check_block(t, &h);
    }
    return error;
}

/* Two numbers and the key, as above, and where a data block lies; where the key shares bytes, only by how much it is
 * longer than the one before. */
static bool scan_index_entry(struct unread *s, struct block_handle *h)
{
    uint64_t shared, rest, change;
    if (!scan_varint(s, &shared) || !scan_varint(s, &rest) || !scan_skip(s, rest))
        return false;
    if (!shared)
        return scan_handle(s, h);
    h->offset += h->size + TRAILER;
    if (!scan_varint(s, &change))
        return false;
    h->size += change >> 1 ^ -(change & 1);
    return true;
}

static int check_index(const struct table *t, const struct block_handle *where, bool data)
{
    CLEANUP_FREE char *memory = NULL;
    const char *block;
    struct unread s = {NULL, NULL};
    struct block_handle first = {0, 0}, last = {0, 0};
    uint64_t end = 0;
    int error = read_block(t, where, &memory, &block);
    if (!error && !scan_block(&s, block, where->size))
        error = -EBADMSG;
    while (!error && s.at < s.end) {
        if (!scan_index_entry(&s, &last) || last.offset != end || last.size > where->offset - end)
            return -EBADMSG;
        if (!end)
            first = last;
        end += last.size + TRAILER;
        if (end > where->offset)
            return -EBADMSG;
    }
    if (!error && !end)
        error = -EBADMSG;
    if (!error && data)
        error = check_block(t, &first);
    return error || !data ? error : check_block(t, &last);
}

static int check_footer(const struct table *t, struct block_handle *metaindex, struct block_handle *index)
{
    const char *footer = t->tail + (t->bytes - t->from) - FOOTER;
    struct unread s = {footer + FOOTER_HANDLES, footer + FOOTER_FORM};
    bool right = footer[0] == ROCKS_XXH3 && load32(footer + FOOTER_FORM) == ROCKS_TABLE_FORM &&
                 load64(footer + FOOTER_MAGIC) == MAGIC && scan_handle(&s, metaindex) && scan_handle(&s, index);
    return right ? 0 : -EBADMSG;
}

int rocks_check_table(int fd, bool data)
{
    struct stat st;
    struct block_handle metaindex, index;
    if (fstat(fd, &st) < 0)
        return -errno;
    struct table t = {.fd = fd, .bytes = (uint64_t)st.st_size};
    if (t.bytes < FOOTER)
        return -EBADMSG;
    t.from = t.bytes > TAIL ? t.bytes - TAIL : 0;
    CLEANUP_FREE char *buffer = rocks_buffer(t.bytes - t.from);
    int error = -ENOMEM;
    t.tail = buffer ? rocks_read(fd, t.from, t.bytes, buffer, &error) : NULL;
    if (!t.tail)
        return error;
    error = check_footer(&t, &metaindex, &index);
    if (!error)
        error = check_metaindex(&t, &metaindex);
    return error ? error : check_index(&t, &index, data);
}
