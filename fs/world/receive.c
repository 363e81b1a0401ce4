#include "fs/world/receive.h"

#include "fs/store/unpack.h"

#include <errno.h>

void receive_values_of(const struct span *span, uint32_t *first, uint32_t *count)
{
    *first = (uint32_t)(span->offset / VALUE_BYTES);
    *count = (uint32_t)((span->offset + span->length - 1) / VALUE_BYTES) - *first + 1;
}

static struct value_part part_of(const struct catalog *c, const struct span *span, uint64_t value)
{
    uint64_t begin = value * VALUE_BYTES, end = span->offset + span->length;
    return (struct value_part){
        .raw = value_raw(c, span->file, value),
        .from = span->offset > begin ? (uint32_t)(span->offset - begin) : 0,
        .to = end - begin < VALUE_BYTES ? (uint32_t)(end - begin) : VALUE_BYTES,
    };
}

/* A whole value came, of which in blocks no more is looked at than is wanted. */
static int open_value(struct unpacking *u, const struct payload_value *v, const struct value_part *part, uint64_t seed,
                      bool *in_slot)
{
    uint32_t from = 0, to;
    bool blocks = value_is_in_blocks(v->length, part->raw);
    if (blocks && value_check_header(v->bytes, v->length, seed, part->raw))
        return -EBADMSG;
    if (blocks)
        value_part_stored(part, &from, &to);
    int error = unpack_value(u, part, seed, (const char *)v->bytes + from, v->length);
    *in_slot |= !error && (blocks || value_codec_of(v->bytes) == VALUE_RAW);
    return error;
}

int receive_payload(const struct self *self, const void *slot, uint32_t length, struct store_read *read, bool *in_slot)
{
    const struct catalog *c = self->config.catalog;
    const struct span *span = &read->span;
    struct payload_value value[RING_VALUES];
    struct unpacking u = {.answer = &read->answer, .pool = store_pool(self->store)};
    uint64_t seed = catalog_file_seed(c, span->file);
    uint32_t first, count;
    receive_values_of(span, &first, &count);
    int error = payload_parse(slot, length, span->file, first, count, value);
    *in_slot = false;
    for (uint32_t i = 0; i < count && !error; i++) {
        struct value_part part = part_of(c, span, first + i);
        error = open_value(&u, &value[i], &part, value_seed(seed, first + i), in_slot);
    }
    unpack_end(&u);
    if (error) {
        answer_release(&read->answer);
        *in_slot = false;
    }
    return error;
}
