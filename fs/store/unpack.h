/* Makes a stored value part of an answer: checks its bytes unless they were verified before, and passes them on in
 * place or decompressed into a buffer that belongs to the answer. */
#ifndef FS_STORE_UNPACK_H
#define FS_STORE_UNPACK_H

#include "fs/store/pool.h"
#include "fs/store/answer.h"

struct unpacking {
    struct answer *answer;
    struct pool *pool;
    struct value_codec_state *codec; /* NULL at first */
    char *buffer;                    /* the rest of the answer's last buffer; NULL at first */
    size_t room;
};

/* Add a part of a value of `n` stored bytes. `bytes` begins with the first needed one: see value_part_stored for a
 * value in blocks; otherwise all bytes are needed. 0; -EBADMSG: verification failed; -ENOMEM. */
int unpack_value(struct unpacking *u, const struct value_part *part, uint64_t seed, const void *bytes, size_t n);
void unpack_end(struct unpacking *u);

#endif
