/* libFuzzer target: no reply of another node, however made, may lead its reader outside the bytes that came. The first
 * bytes say what was asked for; half of the inputs get a header that fits it. */
#include "fs/wire/ring.h"

#include "fs/base/hash.h"
#include "fs/store/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix(uint8_t *bytes, size_t n, uint32_t count)
{
    struct payload_header h;
    if (n < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    payload_finish(bytes, &(struct value_run){1, 2, count <= RING_VALUES ? count : RING_VALUES}, h.length);
}

/* As receive.c does, for a part that begins in some block. */
static void open_cut(const struct payload_value *v, uint8_t some)
{
    struct iovec piece[FETCH_BLOCKS];
    struct value_part part = {.raw = VALUE_BYTES, .from = some % FETCH_BLOCKS * VALUE_BLOCK};
    uint32_t from, to;
    for (part.to = part.from + 1; v->cut && part.to <= part.raw; part.to++) {
        value_part_stored(&part, &from, &to);
        if (to - from == v->length) {
            value_part_open(&part, v->bytes, 0, piece);
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct value_codec_state *codec;
    if (!codec)
        codec = value_codec_create(1);
    if (size < 2)
        return 0;
    uint32_t count = data[1] % (RING_VALUES + 2);
    size_t n = size - 2;
    uint8_t *bytes = aligned_alloc(16, (n + 16) & ~(size_t)15), *raw = malloc(VALUE_BYTES);
    memcpy(bytes, data + 2, n);
    if (data[0] & 1)
        fix(bytes, n, count);
    struct payload_value value[RING_VALUES];
    if (payload_parse(bytes, n, &(struct value_run){1, 2, count}, value) == 0)
        for (uint32_t i = 0; i < count; i++) {
            open_cut(&value[i], data[0]);
            volatile uint64_t sum = hash64(value[i].bytes, value[i].length, 0);
            uint32_t length;
            memcpy(&length, (const char *)value[i].bytes + offsetof(struct value_header, raw_length), sizeof length);
            if (value_check_header(value[i].bytes, value[i].length, 0, length) == 0)
                value_open(codec, value[i].bytes, value[i].length, raw);
            (void)sum;
        }
    free(bytes);
    free(raw);
    return 0;
}
