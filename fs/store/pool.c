/* Spares are kept up to POOL_SPARES of a kind; what is beyond is freed when it is put back. */
#include "fs/store/pool.h"

#include "fs/store/span.h"

#include <stdlib.h>

void pool_init(struct pool *pool)
{
    *pool = (struct pool){.codecs = 0};
    pthread_mutex_init(&pool->lock, NULL);
}

void pool_fini(struct pool *pool)
{
    while (pool->codecs)
        value_codec_destroy(pool->codec[--pool->codecs]);
    while (pool->buffers)
        free(pool->buffer[--pool->buffers]);
    pthread_mutex_destroy(&pool->lock);
}

struct value_codec_state *pool_codec_get(struct pool *pool)
{
    struct value_codec_state *codec = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->codecs)
        codec = pool->codec[--pool->codecs];
    pthread_mutex_unlock(&pool->lock);
    return codec ? codec : value_codec_create(0);
}

void pool_codec_put(struct pool *pool, struct value_codec_state *codec)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->codecs < POOL_SPARES) {
        pool->codec[pool->codecs++] = codec;
        codec = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    value_codec_destroy(codec);
}

void *pool_buffer_get(struct pool *pool)
{
    void *buffer = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->buffers)
        buffer = pool->buffer[--pool->buffers];
    pthread_mutex_unlock(&pool->lock);
    return buffer ? buffer : malloc(VALUE_BYTES);
}

void pool_buffer_put(struct pool *pool, void *buffer)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->buffers < POOL_SPARES) {
        pool->buffer[pool->buffers++] = buffer;
        buffer = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    free(buffer);
}
