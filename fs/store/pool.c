/* Spares are kept up to POOL_SPARES of a kind; what is beyond is freed when it is put back. */
#include "fs/store/pool.h"

#include "fs/store/span.h"

#include <stdlib.h>

enum { BESIDE_A_VALUE = 128 }; /* at most so many bytes lie between two values that are read at once */

#define ROUND_UP(n) (((n) + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN)
const size_t pool_bytes[POOL_SIZES] = {
    [POOL_VALUE] = ROUND_UP(VALUE_MOST + 2 * POOL_ALIGN),
    [POOL_SPAN] = ROUND_UP(ANSWER_VALUES * (VALUE_MOST + BESIDE_A_VALUE) + 2 * POOL_ALIGN),
};

static void buffer_free(struct buffer *buffer)
{
    if (buffer)
        free(buffer->bytes);
    free(buffer);
}

void pool_init(struct pool *pool)
{
    *pool = (struct pool){.codecs = 0};
    pthread_mutex_init(&pool->lock, NULL);
}

void pool_fini(struct pool *pool)
{
    while (pool->codecs)
        value_codec_destroy(pool->codec[--pool->codecs]);
    for (int size = 0; size < POOL_SIZES; size++)
        while (pool->buffer[size]) {
            struct buffer *buffer = pool->buffer[size];
            pool->buffer[size] = buffer->next;
            buffer_free(buffer);
        }
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

static struct buffer *buffer_make(struct pool *pool, enum pool_size size)
{
    struct buffer *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (struct buffer){aligned_alloc(POOL_ALIGN, pool_bytes[size]), size, pool, NULL};
    if (b->bytes)
        return b;
    free(b);
    return NULL;
}

struct buffer *pool_buffer_get(struct pool *pool, enum pool_size size)
{
    pthread_mutex_lock(&pool->lock);
    struct buffer *buffer = pool->buffer[size];
    if (buffer) {
        pool->buffer[size] = buffer->next;
        pool->buffers[size]--;
    }
    pthread_mutex_unlock(&pool->lock);
    return buffer ? buffer : buffer_make(pool, size);
}

void pool_buffer_put(struct buffer *buffer)
{
    struct pool *pool = buffer->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->buffers[buffer->size] < POOL_SPARES) {
        buffer->next = pool->buffer[buffer->size];
        pool->buffer[buffer->size] = buffer;
        pool->buffers[buffer->size]++;
        buffer = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    buffer_free(buffer);
}
