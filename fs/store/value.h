/* A stored value: a header and up to 128 KiB of a file, raw, compressed, or raw in blocks. The form is the same in both
 * tiers and on the wire between nodes; it is described byte by byte in fs/store/FORMAT.
 *
 * The header's checksum covers the header and the stored bytes, and is seeded by the file and by the value's index in
 * it: a value that is damaged, or stands in the wrong place, does not verify. In blocks, the header's covers the header
 * alone, and each block has one of its own, so that a few bytes of the value can be read and verified alone. */
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
    uint16_t tag; /* of the seed: tells a value in the wrong place without a look at its bytes */
    uint32_t raw_length;
    uint64_t checksum;
};

/* The contexts and buffers of zstd, for one thread at a time. Level 0 never compresses. */
struct value_codec_state;
struct value_codec_state *value_codec_create(int zstd_level);
void value_codec_destroy(struct value_codec_state *state);

uint64_t value_seed(uint64_t file_seed, uint64_t index);

/* `value` has a gap of VALUE_HEADER bytes and then `raw` bytes, with VALUE_IN_BLOCKS also room for value_sums(raw)
 * more. Writes the header and compresses in place, where VALUE_TRY is set and it saves a tenth; else cuts it into
 * blocks, where that is asked for. Returns the length of the stored value, header included. */
enum value_wish { VALUE_TRY = 1, VALUE_IN_BLOCKS = 2 };
size_t value_seal(struct value_codec_state *state, void *value, size_t raw, uint64_t seed, unsigned wish);

static inline size_t value_sums(size_t raw)
{
    return (raw + VALUE_BLOCK - 1) / VALUE_BLOCK * VALUE_SUM;
}

/* Check a stored value. 0, or -EBADMSG. Nothing in it is believed before this. */
int value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw);
/* All but the checksums: for bytes that something else has checked already. */
int value_check_header(const void *value, size_t n, uint64_t seed, size_t expected_raw);

/* Bytes of a value in blocks, without the rest of it. The stored length tells whether it is one. */
static inline size_t value_in_blocks(size_t raw)
{
    return VALUE_HEADER + raw + value_sums(raw);
}

static inline bool value_is_in_blocks(size_t n, size_t raw)
{
    return n == value_in_blocks(raw);
}

/* Which of the stored bytes are needed for bytes from…to, and these bytes out of them, checked: the number of pieces
 * (at most one for each block that is touched), or -EBADMSG. `seed` is the value's. */
struct value_part {
    uint32_t raw, from, to; /* from < to <= raw */
};
bool value_part_is_whole(const struct value_part *part); /* it touches all blocks */
void value_part_stored(const struct value_part *part, uint32_t *from, uint32_t *to);
int value_part_open(const struct value_part *part, const void *stored, uint64_t seed, struct iovec *piece);

static inline enum value_codec value_codec_of(const void *value) /* of a value that passed */
{
    return (enum value_codec)((const uint8_t *)value)[offsetof(struct value_header, codec)];
}

/* The raw bytes of a value that passed and is not in blocks: in place for a raw one, else decompressed into `buffer`
 * (of VALUE_BYTES). NULL: it does not decompress to its length. */
const void *value_open(struct value_codec_state *state, const void *value, size_t n, void *buffer);

/* Is it worth trying? Not for names and first bytes of formats known to be compressed (JPEG, PNG, zip, gzip, …). */
bool value_worth_trying(const char *name, const void *head, size_t n, uint64_t file_size);

#endif
