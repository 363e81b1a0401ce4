/* May RocksDB open this file? It uses some bytes without a checksum, such as the footer, and aborts the process if the
 * first or last entry is unreadable. So everything that RocksDB itself reads of a segment's file is checked first:
 *
 *   data blocks │ index │ properties │ metaindex │ footer
 *
 * Each block is followed by its type (1 byte) and a checksum of both (4 bytes). The metaindex leads to the properties,
 * the index to the data blocks, which are contiguous from the start of the file.
 *
 * The footer has 53 bytes: kind of checksum (1); positions of metaindex and index (four varints); zeros up to byte 41;
 * format version (4); magic number (8). */
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
    TAIL = 64 << 10, /* read first: the footer, and usually everything but the data */
};
#define MAGIC 0x88e241b785f4cff7u

struct table {
    int fd;
    unsigned char sums;   /* kind of checksum */
    uint64_t bytes, from; /* the tail begins at `from` */
    const char *tail;
};

/* Position of a block, without its trailer. */
struct block_handle {
    uint64_t offset, size;
};

/* Bytes that remain to be parsed. */
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

/* RocksDB's checksum of a block and its type. Segments have ROCKS_XXH64, those of older versions ROCKS_XXH3. */
static uint32_t block_sum(const struct table *t, const char *block, uint64_t size)
{
    if (t->sums == ROCKS_XXH64)
        return (uint32_t)hash_xxh64(block, size + 1);
    return (uint32_t)hash64(block, size, 0) ^ (unsigned char)block[size] * 0x6b9083d9u;
}

/* Get a block's verified bytes: they are in the tail, or in `memory`, which the caller frees. */
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
    return block_sum(t, *block, h->size) == load32(*block + h->size + 1) ? 0 : -EBADMSG;
}

static int check_block(const struct table *t, const struct block_handle *h)
{
    CLEANUP_FREE char *memory = NULL;
    const char *block;
    return read_block(t, h, &memory, &block);
}

/* The entries of a block end before its restart points, whose number is at the end of the block. */
static bool scan_block(struct unread *s, const char *block, uint64_t size)
{
    uint64_t restarts = size >= 4 ? load32(block + size - 4) : 0;
    *s = (struct unread){block, block + size - 4 * (restarts + 1)};
    return restarts && size >= 4 * (restarts + 1);
}

/* An entry: three numbers (key bytes shared with the previous key, other key bytes, length of the value), the key, and
 * the value: the position of a block. */
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

/* An entry: two numbers and the key, as above, and the position of a data block. If the key shares bytes with the
 * previous one, the block follows the previous block, and only the difference of their lengths is stored. */
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
    bool right = (t->sums == ROCKS_XXH64 || t->sums == ROCKS_XXH3) &&
                 load32(footer + FOOTER_FORM) == ROCKS_TABLE_FORM && load64(footer + FOOTER_MAGIC) == MAGIC &&
                 scan_handle(&s, metaindex) && scan_handle(&s, index);
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
    t.sums = (unsigned char)t.tail[t.bytes - t.from - FOOTER];
    error = check_footer(&t, &metaindex, &index);
    if (!error)
        error = check_metaindex(&t, &metaindex);
    return error ? error : check_index(&t, &index, data);
}
