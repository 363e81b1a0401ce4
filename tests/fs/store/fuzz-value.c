/* libFuzzer target: no bytes, however made, may lead the reader of stored values outside its buffers. Half of the
 * inputs get a right checksum, so that the decoder behind it is reached. */
#include "fs/base/hash.h"
#include "fs/store/answer.h"
#include "fs/store/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_checksum(uint8_t *value, size_t n, uint64_t seed)
{
    uint64_t half = hash64(value, offsetof(struct value_header, checksum), seed);
    bool blocks = value[offsetof(struct value_header, codec)] == VALUE_BLOCKS;
    uint64_t sum = hash64(value + VALUE_HEADER, blocks ? 0 : n - VALUE_HEADER, half);
    memcpy(value + offsetof(struct value_header, checksum), &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct value_codec_state *codec;
    if (!codec)
        codec = value_codec_create(1);
    if (size < 1 || size > VALUE_MOST + 64)
        return 0;
    bool fix = data[0] & 1, part = data[0] & 2;
    size_t n = size - 1;
    uint8_t *value = malloc(n ? n : 1), *buffer = malloc(VALUE_BYTES);
    memcpy(value, data + 1, n);
    uint32_t raw = 0;
    if (n >= VALUE_HEADER) {
        memcpy(&raw, value + offsetof(struct value_header, raw_length), sizeof raw);
        if (fix)
            fix_checksum(value, n, 1);
    }
    if (part && value_is_in_blocks(n, raw) && raw && raw <= VALUE_BYTES) {
        struct iovec piece[VALUE_BYTES / VALUE_BLOCK];
        struct value_part p = {raw, data[0] % raw, raw};
        uint32_t from, to;
        value_part_stored(&p, &from, &to);
        value_part_open(&p, value + from, 1, piece);
    }
    if (value_check(value, n, 1, raw) == 0) {
        const uint8_t *bytes = value_open(codec, value, n, buffer);
        volatile uint64_t sum = bytes ? hash64(bytes, raw, 0) : 0; /* every byte of the result is read */
        (void)sum;
    }
    free(value);
    free(buffer);
    return 0;
}
