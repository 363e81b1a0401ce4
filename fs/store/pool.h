/* A few spare zstd contexts and buffers for answers; threads on different cores share none, as far as there are enough.
 */
#ifndef FS_STORE_POOL_H
#define FS_STORE_POOL_H

#include "fs/base/thread.h"
#include "fs/store/value.h"

enum {
    POOL_SPARES = 2,   /* of a kind, in a stripe */
    POOL_ALIGN = 4096, /* of a buffer and its length */
};
/* A buffer for one stored value, or for all that a span touches, each with a page more at either end. */
enum pool_kind { POOL_VALUE, POOL_SPAN, POOL_SIZES, POOL_CODEC = POOL_SIZES, POOL_KINDS };
extern const size_t pool_bytes[POOL_SIZES];

struct pool;
struct buffer {
    char *bytes;
    enum pool_kind size;
    struct pool *pool;
};

struct pool_stripe {
    _Alignas(CACHE_LINE) pthread_mutex_t lock; /* innermost */
    int spares[POOL_KINDS];                    /* lock, as the next */
    void *spare[POOL_KINDS][POOL_SPARES];
};
struct pool {
    struct pool_stripe stripe[THREAD_STRIPES];
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

struct value_codec_state *pool_codec_get(struct pool *pool); /* NULL: no memory */
void pool_codec_put(struct pool *pool, struct value_codec_state *codec);
struct buffer *pool_buffer_get(struct pool *pool, enum pool_kind size); /* NULL: no memory */
void pool_buffer_put(void *buffer); /* a struct buffer; an answer's pin is given back so */

#endif
