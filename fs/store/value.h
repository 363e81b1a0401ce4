/* A stored value: a header and up to 128 KiB of a file, raw or compressed. The form is the same in both tiers and on
 * the wire between nodes; it is described byte by byte in fs/store/FORMAT.
 *
 * The checksum covers the stored bytes and the header, seeded with the file's seed and the value's index in the file:
 * a value that is damaged, or stands in the wrong place, does not verify. */
#ifndef FS_STORE_VALUE_H
#define FS_STORE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_codec { VALUE_RAW, VALUE_ZSTD };
enum { VALUE_HEADER = 16 };

struct value_header {
    uint8_t version, codec;
    uint16_t tag; /* of the seed: tells a value in the wrong place without a look at its bytes */
    uint32_t raw_length;
    uint64_t checksum;
};

/* One per thread: the contexts and buffers of zstd. Level 0 never compresses. */
struct value_codec_state;
struct value_codec_state *value_codec_create(int zstd_level);
void value_codec_destroy(struct value_codec_state *state);

uint64_t value_seed(uint64_t file_seed, uint64_t index);

/* `value` has a gap of VALUE_HEADER bytes and then `raw` bytes. Writes the header and, where it saves a tenth and
 * `try` is set, compresses in place. Returns the length of the stored value, header included. */
size_t value_seal(struct value_codec_state *state, void *value, size_t raw, uint64_t seed, bool try);

/* Check a stored value. 0, or -EBADMSG. Nothing in it is believed before this. */
int value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw);
/* The same for bytes that something else has checked already: all but the checksum itself. */
int value_check_header(const void *value, size_t n, uint64_t seed, size_t expected_raw);

static inline enum value_codec value_codec_of(const void *value) /* of a value that passed */
{
    return (enum value_codec)((const uint8_t *)value)[offsetof(struct value_header, codec)];
}

/* The raw bytes of a value that passed: in place for a raw one, else decompressed into `buffer` (of VALUE_BYTES).
 * NULL: it does not decompress to its length. */
const void *value_open(struct value_codec_state *state, const void *value, size_t n, void *buffer);

/* Is it worth trying? Not for names and first bytes of formats known to be compressed (JPEG, PNG, zip, gzip, …). */
bool value_worth_trying(const char *name, const void *head, size_t n, uint64_t file_size);

#endif
