#include "fs/store/unpack.h"

#include <errno.h>

static int unpack_blocks(struct answer *answer, const struct value_part *part, uint64_t seed, const void *bytes)
{
    int pieces = value_part_open(part, bytes, seed, answer->piece + answer->pieces);
    if (pieces < 0)
        return pieces;
    answer->pieces += pieces;
    return 0;
}

/* Room for a decompressed value. The first value of an answer has a buffer of its own, since most reads have only one.
 * All others share one: the pool does not keep a buffer for each, and allocating them costs a tenth of the time of long
 * reads. NULL: no memory. */
static char *unpack_room(struct unpacking *u)
{
    if (u->room < VALUE_BYTES) {
        enum pool_kind size = u->buffer ? POOL_SPAN : POOL_VALUE;
        struct buffer *b = pool_buffer_get(u->pool, size);
        if (!b)
            return NULL;
        answer_pin(u->answer, pool_buffer_put, b);
        u->buffer = b->bytes;
        u->room = size == POOL_SPAN ? pool_bytes[size] : VALUE_BYTES;
    }
    char *room = u->buffer;
    u->buffer += VALUE_BYTES;
    u->room -= VALUE_BYTES;
    return room;
}

int unpack_value(struct unpacking *u, const struct value_part *part, uint64_t seed, const void *bytes, size_t n)
{
    char *room = NULL;
    if (value_is_in_blocks(n, part->raw))
        return unpack_blocks(u->answer, part, seed, bytes);
    if (part->verified ? value_check_header(bytes, n, seed, part->raw) : value_check(bytes, n, seed, part->raw))
        return -EBADMSG;
    if (value_codec_of(bytes) != VALUE_RAW) {
        if (!u->codec && !(u->codec = pool_codec_get(u->pool)))
            return -ENOMEM;
        if (!(room = unpack_room(u)))
            return -ENOMEM;
    }
    const char *raw = value_open(u->codec, bytes, n, room);
    if (!raw)
        return -EBADMSG;
    answer_add(u->answer, raw + part->from, part->to - part->from);
    return 0;
}

void unpack_end(struct unpacking *u)
{
    if (u->codec)
        pool_codec_put(u->pool, u->codec);
}
