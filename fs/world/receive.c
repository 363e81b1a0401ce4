#include "fs/world/receive.h"

#include "fs/store/unpack.h"

#include <errno.h>

void receive_ask(const struct catalog *c, const struct span *span, struct ring_message *m)
{
    uint64_t last = span->offset + span->length - 1;
    *m = (struct ring_message){.file = span->file, .value = (uint32_t)(span->offset / VALUE_BYTES)};
    m->count = (uint32_t)(last / VALUE_BYTES) - m->value + 1;
    if (!file_in_blocks(c, span->file))
        return;
    uint32_t head = (uint32_t)(span->offset % VALUE_BYTES / VALUE_BLOCK), end = (uint32_t)(last % VALUE_BYTES);
    uint32_t tail = (value_raw(c, span->file, last / VALUE_BYTES) - 1) / VALUE_BLOCK - end / VALUE_BLOCK;
    m->flags = head << FETCH_HEAD | tail << FETCH_TAIL;
}

struct value_part receive_part(const struct catalog *c, const struct span *span, uint64_t value)
{
    uint64_t begin = value * VALUE_BYTES, end = span->offset + span->length;
    return (struct value_part){
        .raw = value_raw(c, span->file, value),
        .from = span->offset > begin ? (uint32_t)(span->offset - begin) : 0,
        .to = end - begin < VALUE_BYTES ? (uint32_t)(end - begin) : VALUE_BYTES,
    };
}

/* For a value in blocks, only the wanted blocks are checked; others may be missing. */
static int open_value(struct unpacking *u, const struct payload_value *v, const struct value_part *part, uint64_t seed,
                      bool *in_slot)
{
    uint32_t from = 0, to = 0, length = v->cut ? (uint32_t)value_in_blocks(part->raw) : v->length;
    bool blocks = value_is_in_blocks(length, part->raw);
    if (blocks)
        value_part_stored(part, &from, &to);
    if (v->cut ? v->length != to - from : blocks && value_check_header(v->bytes, length, seed, part->raw))
        return -EBADMSG;
    int error = unpack_value(u, part, seed, (const char *)v->bytes + (v->cut ? 0 : from), length);
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
    struct ring_message asked;
    receive_ask(c, span, &asked);
    const struct value_run run = {span->file, asked.value, asked.count};
    int error = payload_parse(slot, length, &run, value);
    *in_slot = false;
    for (uint32_t i = 0; i < asked.count && !error; i++) {
        struct value_part part = receive_part(c, span, asked.value + i);
        error = open_value(&u, &value[i], &part, value_seed(seed, asked.value + i), in_slot);
    }
    unpack_end(&u);
    if (error) {
        answer_release(&read->answer);
        *in_slot = false;
    }
    return error;
}
