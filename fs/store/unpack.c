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

int unpack_value(struct unpacking *u, const struct value_part *part, uint64_t seed, const void *bytes, size_t n)
{
    struct buffer *buffer = NULL;
    if (value_is_in_blocks(n, part->raw))
        return unpack_blocks(u->answer, part, seed, bytes);
    if (part->verified ? value_check_header(bytes, n, seed, part->raw) : value_check(bytes, n, seed, part->raw))
        return -EBADMSG;
    if (value_codec_of(bytes) != VALUE_RAW) {
        if (!u->codec && !(u->codec = pool_codec_get(u->pool)))
            return -ENOMEM;
        buffer = pool_buffer_get(u->pool, POOL_VALUE);
        if (!buffer)
            return -ENOMEM;
        answer_pin(u->answer, pool_buffer_put, buffer);
    }
    const char *raw = value_open(u->codec, bytes, n, buffer ? buffer->bytes : NULL);
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
