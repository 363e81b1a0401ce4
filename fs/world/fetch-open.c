/* Opening what another node answered: its values are checked, decompressed where they are packed, and else given on as
 * they lie in the slot, which is free again when the answer is released. */
#include "fs/world/inside.h"

#include <errno.h>
#include <stdlib.h>

/* What one value gives to an answer. */
struct opened {
    struct answer *answer;
    char *room; /* for what is decompressed */
    struct pool *pool;
    struct value_codec_state *codec;
    bool in_slot;
};

static int open_packed(struct opened *o, const struct payload_value *v, const struct value_part *part, uint64_t seed)
{
    if (value_check(v->bytes, v->length, seed, part->raw))
        return -EBADMSG;
    bool raw = value_codec_of(v->bytes) == VALUE_RAW;
    if (!raw && !o->codec && !(o->codec = pool_codec_get(o->pool)))
        return -ENOMEM;
    const char *bytes = value_open(o->codec, v->bytes, v->length, o->room);
    if (!bytes)
        return -EBADMSG;
    answer_add(o->answer, bytes + part->from, part->to - part->from);
    o->in_slot |= raw;
    if (!raw)
        o->room += VALUE_BYTES;
    return 0;
}

static int open_blocks(struct opened *o, const struct payload_value *v, const struct value_part *part, uint64_t seed)
{
    uint32_t from, to;
    if (value_check_header(v->bytes, v->length, seed, part->raw))
        return -EBADMSG;
    value_part_stored(part, &from, &to);
    int pieces = value_part_open(part, (const char *)v->bytes + from, seed, o->answer->piece + o->answer->pieces);
    if (pieces < 0)
        return pieces;
    o->answer->pieces += pieces;
    o->in_slot = true;
    return 0;
}

static struct value_part part_of(const struct catalog *c, const struct span *span, uint64_t value)
{
    uint64_t begin = value * VALUE_BYTES, end = span->offset + span->length;
    return (struct value_part){
        .raw = raw_of(c, span->file, value),
        .from = span->offset > begin ? (uint32_t)(span->offset - begin) : 0,
        .to = end - begin < VALUE_BYTES ? (uint32_t)(end - begin) : VALUE_BYTES,
    };
}

static bool is_packed(const struct payload_value *v, const struct value_part *part)
{
    return v->length != VALUE_HEADER + part->raw && !value_is_in_blocks(v->length, part->raw);
}

static int open_values(const struct catalog *c, const struct fetch *fetch, const struct span *span,
                       const struct payload_value *value, struct opened *o)
{
    int packed = 0, error = 0;
    for (uint32_t i = 0; i < fetch->count; i++) {
        struct value_part part = part_of(c, span, fetch->value + i);
        packed += is_packed(&value[i], &part);
    }
    if (packed) {
        o->room = malloc((size_t)packed * VALUE_BYTES);
        if (!o->room)
            return -ENOMEM;
        answer_pin(o->answer, free, o->room);
    }
    for (uint32_t i = 0; i < fetch->count && !error; i++) {
        struct value_part part = part_of(c, span, fetch->value + i);
        uint64_t seed = value_seed(catalog_file_seed(c, fetch->file), fetch->value + i);
        bool blocks = value_is_in_blocks(value[i].length, part.raw);
        error = blocks ? open_blocks(o, &value[i], &part, seed) : open_packed(o, &value[i], &part, seed);
    }
    return error;
}

/* The bytes stay in the slot, for as long as the answer lasts. */
int fetch_open(struct link *l, struct fetch *fetch, struct store_read *read, uint32_t length)
{
    struct payload_value value[RING_VALUES];
    struct opened o = {.answer = &read->answer, .pool = &l->peers->pool};
    const void *slot = ring_slot(&l->ring, (uint32_t)(fetch - l->fetches.fetch));
    int error = payload_parse(slot, length, fetch->file, fetch->value, fetch->count, value);
    if (!error)
        error = open_values(l->peers->config.catalog, fetch, &read->span, value, &o);
    if (o.codec)
        pool_codec_put(o.pool, o.codec);
    if (error)
        answer_release(&read->answer);
    else if (o.in_slot)
        answer_pin(&read->answer, fetch_release, fetch);
    if (error || !o.in_slot)
        fetch_release(fetch);
    return error;
}
