/* A few spare zstd contexts and buffers for answers, shared by the threads that read. */
#ifndef FS_STORE_POOL_H
#define FS_STORE_POOL_H

#include "fs/store/value.h"

#include <pthread.h>

enum { POOL_SPARES = 16 };

struct pool {
    pthread_mutex_t lock; /* innermost */
    int codecs, buffers;  /* lock: all below */
    struct value_codec_state *codec[POOL_SPARES];
    void *buffer[POOL_SPARES];
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

struct value_codec_state *pool_codec_get(struct pool *pool); /* NULL: no memory */
void pool_codec_put(struct pool *pool, struct value_codec_state *codec);
void *pool_buffer_get(struct pool *pool); /* of VALUE_BYTES, or NULL */
void pool_buffer_put(struct pool *pool, void *buffer);

#endif
