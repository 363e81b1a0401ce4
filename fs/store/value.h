/* A stored value: a header and up to 128 KiB of a file: raw, compressed, or raw in blocks. Both tiers and the wire
 * between nodes use this format; fs/store/FORMAT describes it byte by byte.
 *
 * The checksum covers the header and the stored bytes; its seed is the file and the value's number in it. So a value
 * that is damaged or in the wrong place fails verification. In a value in blocks, the header's checksum covers only the
 * header, and each block has its own, so that a few bytes can be read and verified. */
#ifndef FS_STORE_VALUE_H
#define FS_STORE_VALUE_H

#include "fs/wire/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum value_codec { VALUE_RAW, VALUE_ZSTD, VALUE_BLOCKS };
struct value_header {
    uint8_t version, codec;
    uint16_t tag; /* of the seed: detects a value in the wrong place without hashing its bytes */
    uint32_t raw_length;
    uint64_t checksum;
};

/* zstd's contexts and buffers, for one thread at a time. Level 0 never compresses. */
struct value_codec_state;
struct value_codec_state *value_codec_create(int zstd_level);
void value_codec_destroy(struct value_codec_state *state);

uint64_t value_seed(uint64_t file_seed, uint64_t index);

/* `value` has a gap of VALUE_HEADER bytes, then `raw` bytes; with VALUE_IN_BLOCKS also room for value_sums(raw) more.
 * Write the header. Compress in place if VALUE_TRY is set and this saves a tenth, with VALUE_IN_BLOCKS a third; else
 * cut it into blocks, if requested. Returns the length of the stored value with its header. */
enum value_wish { VALUE_TRY = 1, VALUE_IN_BLOCKS = 2 };
size_t value_seal(struct value_codec_state *state, void *value, size_t raw, uint64_t seed, unsigned wish);

static inline size_t value_sums(size_t raw)
{
    return (raw + VALUE_BLOCK - 1) / VALUE_BLOCK * VALUE_SUM;
}

/* Check a stored value: 0 or -EBADMSG. Use nothing of it before. */
int value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw);
/* The same without checksums, for bytes that were verified otherwise. */
int value_check_header(const void *value, size_t n, uint64_t seed, size_t expected_raw);

/* Reads of a part of a value in blocks. The stored length shows whether a value is in blocks. */
static inline size_t value_in_blocks(size_t raw)
{
    return VALUE_HEADER + raw + value_sums(raw);
}

static inline bool value_is_in_blocks(size_t n, size_t raw)
{
    return n == value_in_blocks(raw);
}

/* The stored bytes that are needed for bytes from…to; and the checked bytes out of them: the number of pieces (at most
 * one per touched block), or -EBADMSG. `seed` is the value's. */
struct value_part {
    uint32_t raw, from, to; /* from < to <= raw */
    bool verified;          /* its checksums were verified before, and are not computed again */
};
bool value_part_is_whole(const struct value_part *part); /* it touches all blocks */
void value_part_stored(const struct value_part *part, uint32_t *from, uint32_t *to);
int value_part_open(const struct value_part *part, const void *stored, uint64_t seed, struct iovec *piece);

static inline enum value_codec value_codec_of(const void *value) /* of a checked value */
{
    return (enum value_codec)((const uint8_t *)value)[offsetof(struct value_header, codec)];
}

/* The raw bytes of a checked value that is not in blocks: in place if raw, else decompressed into `buffer` (of
 * VALUE_BYTES). NULL: it does not decompress to its length. */
const void *value_open(struct value_codec_state *state, const void *value, size_t n, void *buffer);

/* Is compression worth a try? Not for names and first bytes of compressed formats (JPEG, PNG, zip, gzip, …). */
bool value_worth_trying(const char *name, const void *head, size_t n, uint64_t file_size);

#endif
