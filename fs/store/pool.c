/* Each stripe keeps up to POOL_SPARES unused objects of each kind. Further ones are freed when they are returned. */
#include "fs/store/pool.h"

#include "fs/store/answer.h"

#include "fs/base/cleanup.h"

#include <stdlib.h>

enum { BESIDE_A_VALUE = 128 }; /* maximum gap between two values that are read together */

#define ROUND_UP(n) (((n) + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN)
const size_t pool_bytes[POOL_SIZES] = {
    [POOL_VALUE] = ROUND_UP(VALUE_MOST + 2 * POOL_ALIGN),
    [POOL_SPAN] = ROUND_UP(ANSWER_VALUES * (VALUE_MOST + BESIDE_A_VALUE) + 2 * POOL_ALIGN),
};

static void free_spare(enum pool_kind kind, void *spare)
{
    if (kind == POOL_CODEC) {
        value_codec_destroy(spare);
        return;
    }
    free(((struct buffer *)spare)->bytes);
    free(spare);
}

void pool_init(struct pool *pool)
{
    for (int i = 0; i < THREAD_STRIPES; i++) {
        pool->stripe[i] = (struct pool_stripe){.spares = {0}};
        pthread_mutex_init(&pool->stripe[i].lock, NULL);
    }
}

void pool_fini(struct pool *pool)
{
    for (int i = 0; i < THREAD_STRIPES; i++) {
        struct pool_stripe *stripe = &pool->stripe[i];
        for (enum pool_kind kind = 0; kind < POOL_KINDS; kind++)
            while (stripe->spares[kind])
                free_spare(kind, stripe->spare[kind][--stripe->spares[kind]]);
        pthread_mutex_destroy(&stripe->lock);
    }
}

static void *take_spare(struct pool *pool, enum pool_kind kind)
{
    struct pool_stripe *stripe = &pool->stripe[thread_stripe()];
    LOCK_SCOPE(&stripe->lock);
    return stripe->spares[kind] ? stripe->spare[kind][--stripe->spares[kind]] : NULL;
}

static void give_spare(struct pool *pool, enum pool_kind kind, void *spare)
{
    struct pool_stripe *stripe = &pool->stripe[thread_stripe()];
    pthread_mutex_lock(&stripe->lock);
    bool kept = stripe->spares[kind] < POOL_SPARES;
    if (kept)
        stripe->spare[kind][stripe->spares[kind]++] = spare;
    pthread_mutex_unlock(&stripe->lock);
    if (!kept)
        free_spare(kind, spare);
}

struct value_codec_state *pool_codec_get(struct pool *pool)
{
    struct value_codec_state *codec = take_spare(pool, POOL_CODEC);
    return codec ? codec : value_codec_create(0);
}

void pool_codec_put(struct pool *pool, struct value_codec_state *codec)
{
    give_spare(pool, POOL_CODEC, codec);
}

struct buffer *pool_buffer_get(struct pool *pool, enum pool_kind size)
{
    struct buffer *b = take_spare(pool, size);
    if (b || !(b = malloc(sizeof *b)))
        return b;
    *b = (struct buffer){aligned_alloc(POOL_ALIGN, pool_bytes[size]), size, pool};
    if (b->bytes)
        return b;
    free(b);
    return NULL;
}

void pool_buffer_put(void *object)
{
    struct buffer *buffer = object;
    give_spare(buffer->pool, buffer->size, buffer);
}
