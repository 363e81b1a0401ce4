/* A stored value becomes part of an answer: its bytes are checked, and given on as they lie, or decompressed into a
 * buffer that goes with the answer. */
#ifndef FS_STORE_UNPACK_H
#define FS_STORE_UNPACK_H

#include "fs/store/pool.h"
#include "fs/store/answer.h"

struct unpacking {
    struct answer *answer;
    struct pool *pool;
    struct value_codec_state *codec; /* NULL at first */
};

/* Add a part of a value of `n` stored bytes. `bytes` are those from the first that is needed on: for a value in blocks
 * see value_part_stored, else all. 0; -EBADMSG: they do not verify; -ENOMEM. */
int unpack_value(struct unpacking *u, const struct value_part *part, uint64_t seed, const void *bytes, size_t n);
void unpack_end(struct unpacking *u);

#endif
