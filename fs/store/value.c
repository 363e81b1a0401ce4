/* The format of stored values: see FORMAT. The header's first half seeds the hash of the bytes after it, so one pass
 * over the value checks both. Blocks are checked without the header: their seed identifies the value and the block. */
#include "fs/store/value.h"

#include "fs/base/hash.h"
#include "fs/store/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

_Static_assert(sizeof(struct value_header) == VALUE_HEADER, "the header is 16 bytes");
_Static_assert(VALUE_MOST == VALUE_HEADER + VALUE_BYTES + VALUE_BYTES / VALUE_BLOCK * VALUE_SUM, "a value in blocks");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stored numbers are little-endian");

enum {
    VALUE_VERSION = 2,
    /* Compression must save one in SAVE bytes. A value that would be in blocks loses more by it: all of it is
     * decompressed for a few bytes. */
    SAVE = 10,
    BLOCKS_SAVE = 3,
};

struct value_codec_state {
    int level;
    ZSTD_CCtx *compress; /* created when first needed: a thread that only reads has none */
    ZSTD_DCtx *decompress;
    void *packed; /* VALUE_BYTES; exists with `compress` */
};

struct value_codec_state *value_codec_create(int zstd_level)
{
    struct value_codec_state *s = calloc(1, sizeof *s);
    if (s)
        s->level = zstd_level;
    return s;
}

void value_codec_destroy(struct value_codec_state *s)
{
    if (!s)
        return;
    ZSTD_freeCCtx(s->compress);
    ZSTD_freeDCtx(s->decompress);
    free(s->packed);
    free(s);
}

uint64_t value_seed(uint64_t file_seed, uint64_t index)
{
    /* splitmix64 of both: seeds of neighbouring values must not differ in one bit only */
    uint64_t x = file_seed + (index + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t checksum(const struct value_header *h, const void *bytes, size_t n, uint64_t seed)
{
    return hash64(bytes, n, hash64(h, offsetof(struct value_header, checksum), seed));
}

static uint32_t block_bytes(size_t raw, size_t at)
{
    return raw - at < VALUE_BLOCK ? (uint32_t)(raw - at) : VALUE_BLOCK;
}

/* Where the block that begins with raw byte `at` is stored, at its checksum. */
static size_t block_stored(size_t at)
{
    return VALUE_HEADER + at / VALUE_BLOCK * (VALUE_SUM + VALUE_BLOCK);
}

static uint64_t block_sum(const void *bytes, uint32_t n, size_t at, uint64_t seed)
{
    return hash64(bytes, n, value_seed(seed, at / VALUE_BLOCK));
}

/* From the last block to the first: each moves to make room for the checksums. */
static void cut_into_blocks(char *value, size_t raw, uint64_t seed)
{
    for (size_t left = raw; left;) {
        size_t at = (left - 1) / VALUE_BLOCK * VALUE_BLOCK;
        uint32_t n = block_bytes(raw, at);
        char *block = value + block_stored(at);
        memmove(block + VALUE_SUM, value + VALUE_HEADER + at, n);
        uint64_t sum = block_sum(block + VALUE_SUM, n, at, seed);
        memcpy(block, &sum, sizeof sum);
        left = at;
    }
}

bool value_part_is_whole(const struct value_part *p)
{
    return p->from < VALUE_BLOCK && (p->to - 1) / VALUE_BLOCK == (p->raw - 1) / VALUE_BLOCK;
}

void value_part_stored(const struct value_part *p, uint32_t *from, uint32_t *to)
{
    size_t last = (p->to - 1) / VALUE_BLOCK * VALUE_BLOCK;
    *from = (uint32_t)block_stored(p->from);
    *to = (uint32_t)block_stored(last) + VALUE_SUM + block_bytes(p->raw, last);
}

int value_part_open(const struct value_part *p, const void *stored, uint64_t seed, struct iovec *piece)
{
    const char *block = stored;
    int pieces = 0;
    for (uint32_t at = p->from / VALUE_BLOCK * VALUE_BLOCK; at < p->to; at += VALUE_BLOCK) {
        uint32_t n = block_bytes(p->raw, at), skip = p->from > at ? p->from - at : 0;
        uint32_t end = p->to - at < n ? p->to - at : n;
        uint64_t sum;
        memcpy(&sum, block, sizeof sum);
        if (!p->verified && sum != block_sum(block + VALUE_SUM, n, at, seed))
            return -EBADMSG;
        piece[pieces++] = (struct iovec){(char *)block + VALUE_SUM + skip, end - skip};
        block += VALUE_SUM + n;
    }
    return pieces;
}

static bool blocks_are_right(const char *value, uint32_t raw, uint64_t seed)
{
    struct iovec piece[VALUE_BYTES / VALUE_BLOCK];
    return !raw || value_part_open(&(struct value_part){.raw = raw, .to = raw}, value + VALUE_HEADER, seed, piece) > 0;
}

static bool ready_to_compress(struct value_codec_state *s)
{
    if (!s->compress)
        s->compress = ZSTD_createCCtx();
    if (!s->packed)
        s->packed = malloc(VALUE_BYTES);
    return s->compress && s->packed;
}

/* The compressed length; 0: it does not save one in `share` bytes, or no memory. */
static size_t pack(struct value_codec_state *s, const void *bytes, size_t raw, unsigned share)
{
    size_t most = raw - (raw + share - 1) / share; /* zstd gives up early when it does not fit */
    if (raw > VALUE_BYTES || !most || !ready_to_compress(s))
        return 0;
    size_t n = ZSTD_compressCCtx(s->compress, s->packed, most, bytes, raw, s->level);
    return ZSTD_isError(n) ? 0 : n;
}

size_t value_seal(struct value_codec_state *s, void *value, size_t raw, uint64_t seed, unsigned wish)
{
    struct value_header h = {
        .version = VALUE_VERSION, .codec = VALUE_RAW, .tag = (uint16_t)seed, .raw_length = (uint32_t)raw};
    char *bytes = (char *)value + VALUE_HEADER;
    size_t n = raw;
    unsigned share = wish & VALUE_IN_BLOCKS ? BLOCKS_SAVE : SAVE;
    size_t packed = (wish & VALUE_TRY) && s && s->level ? pack(s, bytes, raw, share) : 0;
    if (packed) {
        h.codec = VALUE_ZSTD;
        memcpy(bytes, s->packed, packed);
        n = packed;
    } else if (wish & VALUE_IN_BLOCKS) {
        h.codec = VALUE_BLOCKS;
        cut_into_blocks(value, raw, seed);
        n = raw + value_sums(raw);
    }
    h.checksum = checksum(&h, bytes, h.codec == VALUE_BLOCKS ? 0 : n, seed);
    memcpy(value, &h, sizeof h);
    return VALUE_HEADER + n;
}

static bool header_fits(const struct value_header *h, size_t stored, uint64_t seed, size_t expected_raw)
{
    if (h->version != VALUE_VERSION || h->tag != (uint16_t)seed || h->raw_length != expected_raw)
        return false;
    switch (h->codec) {
    case VALUE_RAW:
        return stored == h->raw_length;
    case VALUE_ZSTD:
        return stored < h->raw_length;
    case VALUE_BLOCKS:
        return stored == h->raw_length + value_sums(h->raw_length);
    default:
        return false;
    }
}

int value_check_header(const void *value, size_t n, uint64_t seed, size_t expected_raw)
{
    struct value_header h;
    if (n < sizeof h || expected_raw > VALUE_BYTES)
        return -EBADMSG;
    memcpy(&h, value, sizeof h);
    return header_fits(&h, n - sizeof h, seed, expected_raw) ? 0 : -EBADMSG;
}

int value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw)
{
    struct value_header h;
    int error = value_check_header(value, n, seed, expected_raw);
    if (error)
        return error;
    memcpy(&h, value, sizeof h);
    bool blocks = h.codec == VALUE_BLOCKS;
    if (h.checksum != checksum(&h, (const char *)value + sizeof h, blocks ? 0 : n - sizeof h, seed))
        return -EBADMSG;
    return blocks && !blocks_are_right(value, h.raw_length, seed) ? -EBADMSG : 0;
}

const void *value_open(struct value_codec_state *s, const void *value, size_t n, void *buffer)
{
    struct value_header h;
    memcpy(&h, value, sizeof h);
    const char *bytes = (const char *)value + sizeof h;
    if (h.codec == VALUE_RAW)
        return bytes;
    if (h.codec != VALUE_ZSTD || h.raw_length > VALUE_BYTES)
        return NULL;
    if (!s->decompress)
        s->decompress = ZSTD_createDCtx();
    if (!s->decompress)
        return NULL;
    size_t got = ZSTD_decompressDCtx(s->decompress, buffer, h.raw_length, bytes, n - sizeof h);
    return !ZSTD_isError(got) && got == h.raw_length ? buffer : NULL;
}
