/* libFuzzer target: no bytes, however made, may lead the reader of stored values outside its buffers. Half of the
 * inputs get a right checksum, so that the decoder behind it is reached. */
#include "fs/base/hash.h"
#include "fs/store/span.h"
#include "fs/store/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_checksum(uint8_t *value, size_t n, uint64_t seed)
{
    uint64_t half = hash64(value, offsetof(struct value_header, checksum), seed);
    uint64_t sum = hash64(value + VALUE_HEADER, n - VALUE_HEADER, half);
    memcpy(value + offsetof(struct value_header, checksum), &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct value_codec_state *codec;
    if (!codec)
        codec = value_codec_create(1);
    if (size < 1 || size > VALUE_HEADER + VALUE_BYTES + 64)
        return 0;
    bool fix = data[0] & 1;
    size_t n = size - 1;
    uint8_t *value = malloc(n ? n : 1), *buffer = malloc(VALUE_BYTES);
    memcpy(value, data + 1, n);
    uint32_t raw = 0;
    if (n >= VALUE_HEADER) {
        memcpy(&raw, value + offsetof(struct value_header, raw_length), sizeof raw);
        if (fix)
            fix_checksum(value, n, 1);
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
