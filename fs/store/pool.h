/* A few spare zstd contexts and buffers for answers, shared by the threads that read. */
#ifndef FS_STORE_POOL_H
#define FS_STORE_POOL_H

#include "fs/store/value.h"

#include <pthread.h>

enum {
    POOL_SPARES = 16,
    POOL_ALIGN = 4096, /* of a buffer and its length */
};
/* A buffer for one stored value, or for all that a span touches, each with a page more at either end. */
enum pool_size { POOL_VALUE, POOL_SPAN, POOL_SIZES };
extern const size_t pool_bytes[POOL_SIZES];

struct pool;
struct buffer {
    char *bytes;
    enum pool_size size;
    struct pool *pool;
    struct buffer *next; /* among the spares: pool->lock */
};

struct pool {
    pthread_mutex_t lock;            /* innermost */
    int codecs, buffers[POOL_SIZES]; /* lock: all below */
    struct value_codec_state *codec[POOL_SPARES];
    struct buffer *buffer[POOL_SIZES];
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

struct value_codec_state *pool_codec_get(struct pool *pool); /* NULL: no memory */
void pool_codec_put(struct pool *pool, struct value_codec_state *codec);
struct buffer *pool_buffer_get(struct pool *pool, enum pool_size size); /* NULL: no memory */
void pool_buffer_put(struct buffer *buffer);

#endif
