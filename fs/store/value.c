/* The form of stored values: see FORMAT. The header's first half seeds the hash of the bytes behind it, so one pass
 * over the value checks both. */
#include "fs/store/value.h"

#include "fs/base/hash.h"
#include "fs/store/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

_Static_assert(sizeof(struct value_header) == VALUE_HEADER, "the header is 16 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stored numbers are little-endian");

enum { VALUE_VERSION = 1 };

struct value_codec_state {
    int level;
    ZSTD_CCtx *compress; /* made when first needed: a thread that only reads has none */
    ZSTD_DCtx *decompress;
    void *packed; /* VALUE_BYTES, goes with `compress` */
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
    /* splitmix64 of both: neighbouring values of a file must not have seeds that differ in one bit */
    uint64_t x = file_seed + (index + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t checksum(const struct value_header *h, const void *bytes, size_t n, uint64_t seed)
{
    return hash64(bytes, n, hash64(h, offsetof(struct value_header, checksum), seed));
}

static bool ready_to_compress(struct value_codec_state *s)
{
    if (!s->compress)
        s->compress = ZSTD_createCCtx();
    if (!s->packed)
        s->packed = malloc(VALUE_BYTES);
    return s->compress && s->packed;
}

/* The compressed length, or 0: not worth it, or no memory to try. */
static size_t pack(struct value_codec_state *s, const void *bytes, size_t raw)
{
    size_t most = raw - (raw + 9) / 10; /* zstd gives up early when it does not fit: a tenth must be saved */
    if (raw > VALUE_BYTES || !most || !ready_to_compress(s))
        return 0;
    size_t n = ZSTD_compressCCtx(s->compress, s->packed, most, bytes, raw, s->level);
    return ZSTD_isError(n) ? 0 : n;
}

size_t value_seal(struct value_codec_state *s, void *value, size_t raw, uint64_t seed, bool try)
{
    struct value_header h = {
        .version = VALUE_VERSION, .codec = VALUE_RAW, .tag = (uint16_t)seed, .raw_length = (uint32_t)raw};
    char *bytes = (char *)value + VALUE_HEADER;
    size_t n = raw;
    size_t packed = try && s && s->level ? pack(s, bytes, raw) : 0;
    if (packed) {
        h.codec = VALUE_ZSTD;
        memcpy(bytes, s->packed, packed);
        n = packed;
    }
    h.checksum = checksum(&h, bytes, n, seed);
    memcpy(value, &h, sizeof h);
    return VALUE_HEADER + n;
}

int value_check_header(const void *value, size_t n, uint64_t seed, size_t expected_raw)
{
    struct value_header h;
    if (n < sizeof h || expected_raw > VALUE_BYTES)
        return -EBADMSG;
    memcpy(&h, value, sizeof h);
    size_t stored = n - sizeof h;
    if (h.version != VALUE_VERSION || h.tag != (uint16_t)seed || h.raw_length != expected_raw)
        return -EBADMSG;
    bool fits = h.codec == VALUE_RAW ? stored == h.raw_length : h.codec == VALUE_ZSTD && stored < h.raw_length;
    return fits ? 0 : -EBADMSG;
}

int value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw)
{
    struct value_header h;
    int error = value_check_header(value, n, seed, expected_raw);
    if (error)
        return error;
    memcpy(&h, value, sizeof h);
    return h.checksum == checksum(&h, (const char *)value + sizeof h, n - sizeof h, seed) ? 0 : -EBADMSG;
}

const void *value_open(struct value_codec_state *s, const void *value, size_t n, void *buffer)
{
    struct value_header h;
    memcpy(&h, value, sizeof h);
    const char *bytes = (const char *)value + sizeof h;
    if (h.codec == VALUE_RAW)
        return bytes;
    if (h.raw_length > VALUE_BYTES)
        return NULL;
    if (!s->decompress)
        s->decompress = ZSTD_createDCtx();
    if (!s->decompress)
        return NULL;
    size_t got = ZSTD_decompressDCtx(s->decompress, buffer, h.raw_length, bytes, n - sizeof h);
    return !ZSTD_isError(got) && got == h.raw_length ? buffer : NULL;
}
