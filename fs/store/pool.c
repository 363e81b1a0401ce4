/* Each stripe keeps up to POOL_SPARES unused objects of each kind. Further ones are freed when they are returned.
 *
 * A disk reads faster into memory in one piece: a request can have only so many pieces (254 in some virtual machines),
 * and each costs time. So most buffers are cut from areas of huge pages, which are freed with the pool. When all of
 * these are in use, further buffers are made of ordinary pages. */
#include "fs/store/pool.h"

#include "fs/store/answer.h"

#include "fs/base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BESIDE_A_VALUE = 128 }; /* maximum gap between two values that are read together */

#define HUGE_PAGE ((size_t)2 << 20)
#define ROUND_UP(n) (((n) + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN)
const size_t pool_bytes[POOL_SIZES] = {
    [POOL_VALUE] = ROUND_UP(VALUE_MOST + 2 * POOL_ALIGN),
    [POOL_SPAN] = ROUND_UP(ANSWER_VALUES * (VALUE_MOST + BESIDE_A_VALUE) + 2 * POOL_ALIGN),
};
/* 14 buffers per area for a value, 5 for a span; 28 and 20 in all. */
const size_t pool_area_bytes[POOL_SIZES] = {[POOL_VALUE] = HUGE_PAGE, [POOL_SPAN] = 3 * HUGE_PAGE};
static const int most_areas[POOL_SIZES] = {[POOL_VALUE] = 2, [POOL_SPAN] = POOL_AREAS};

static void free_buffer(struct buffer *b)
{
    struct pool *pool = b->pool;
    if (b->shared) {
        LOCK_SCOPE(&pool->lock);
        SLIST_INSERT_HEAD(&pool->areas[b->size].unused, b, next);
        return;
    }
    free(b->bytes);
    free(b);
}

static void free_spare(enum pool_kind kind, void *spare)
{
    if (kind == POOL_CODEC)
        value_codec_destroy(spare);
    else
        free_buffer(spare);
}

void pool_init(struct pool *pool)
{
    for (int i = 0; i < THREAD_STRIPES; i++) {
        pool->stripe[i] = (struct pool_stripe){.spares = {0}};
        pthread_mutex_init(&pool->stripe[i].lock, NULL);
    }
    pthread_mutex_init(&pool->lock, NULL);
    memset(pool->areas, 0, sizeof pool->areas);
}

static void areas_fini(struct pool_areas *a)
{
    for (struct buffer *b; (b = SLIST_FIRST(&a->unused));) {
        SLIST_REMOVE_HEAD(&a->unused, next);
        free(b);
    }
    while (a->areas)
        free(a->area[--a->areas]);
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
    for (enum pool_kind size = 0; size < POOL_SIZES; size++)
        areas_fini(&pool->areas[size]);
    pthread_mutex_destroy(&pool->lock);
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

static struct buffer *new_buffer(struct pool *pool, enum pool_kind size, char *bytes, bool shared)
{
    struct buffer *b = bytes ? malloc(sizeof *b) : NULL;
    if (b)
        *b = (struct buffer){.bytes = bytes, .size = size, .shared = shared, .pool = pool};
    return b;
}

/* The caller holds the lock. Areas whose huge pages are not touched take no memory. */
static void add_area(struct pool *pool, enum pool_kind size)
{
    struct pool_areas *a = &pool->areas[size];
    size_t at = pool_area_bytes[size] / pool_bytes[size] * pool_bytes[size];
    char *area = a->areas < most_areas[size] ? aligned_alloc(HUGE_PAGE, pool_area_bytes[size]) : NULL;
    if (!area)
        return;
    madvise(area, pool_area_bytes[size], MADV_HUGEPAGE); /* without huge pages it is only slower */
    a->area[a->areas++] = area;
    while (at) {
        at -= pool_bytes[size];
        struct buffer *b = new_buffer(pool, size, area + at, true);
        if (b)
            SLIST_INSERT_HEAD(&a->unused, b, next);
    }
}

static struct buffer *take_shared(struct pool *pool, enum pool_kind size)
{
    struct pool_areas *a = &pool->areas[size];
    LOCK_SCOPE(&pool->lock);
    if (SLIST_EMPTY(&a->unused))
        add_area(pool, size);
    struct buffer *b = SLIST_FIRST(&a->unused);
    if (b)
        SLIST_REMOVE_HEAD(&a->unused, next);
    return b;
}

struct buffer *pool_buffer_get(struct pool *pool, enum pool_kind size)
{
    struct buffer *b = take_spare(pool, size);
    if (!b)
        b = take_shared(pool, size);
    if (b)
        return b;
    char *bytes = aligned_alloc(POOL_ALIGN, pool_bytes[size]);
    b = new_buffer(pool, size, bytes, false);
    if (!b)
        free(bytes);
    return b;
}

void pool_buffer_put(void *object)
{
    struct buffer *buffer = object;
    give_spare(buffer->pool, buffer->size, buffer);
}
