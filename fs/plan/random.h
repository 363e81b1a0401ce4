/* The random generators of plans. They are specified, so that every node, build and machine draws the same. */
#ifndef FS_PLAN_RANDOM_H
#define FS_PLAN_RANDOM_H

#include <stdint.h>

/* MT19937 like PyTorch's CPU generator: only the lower 32 bits of the seed are used. */
enum { MT_WORDS = 624, MT_SHIFT = 397 };
struct mt19937 {
    uint32_t word[MT_WORDS];  /* the state */
    uint32_t drawn[MT_WORDS]; /* the tempered output of the state */
    unsigned next;            /* index in `drawn`; MT_WORDS: all are used */
};

void mt_seed(struct mt19937 *mt, uint64_t seed);
void mt_refill(struct mt19937 *mt);

static inline uint32_t mt_next(struct mt19937 *mt)
{
    if (mt->next == MT_WORDS)
        mt_refill(mt);
    return mt->drawn[mt->next++];
}

/* SplitMix64 (Steele, Lea and Flood, 2014): the number at a place of a stream, independent of other draws. Seed and use
 * identify the stream. */
enum random_use {
    RANDOM_EXAMPLES = 1,
    RANDOM_BATCHES,
    RANDOM_BUFFER,
    RANDOM_EXCHANGE,
    RANDOM_GROUP,
    RANDOM_DRAWS,
    RANDOM_PLACES,
};
#define RANDOM_STEP 0x9e3779b97f4a7c15u

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t random_stream(uint64_t seed, enum random_use use)
{
    return random_mix(seed + (uint64_t)use * RANDOM_STEP);
}

static inline uint64_t random_in(uint64_t stream, uint64_t position)
{
    return random_mix(stream + (position + 1) * RANDOM_STEP);
}

static inline uint64_t random_at(uint64_t seed, enum random_use use, uint64_t position)
{
    return random_in(random_stream(seed, use), position);
}

/* A number below n, from a random number of 64 bits. */
static inline uint64_t random_pick(uint64_t random, uint64_t n)
{
    return (uint64_t)((unsigned __int128)random * n >> 64);
}

#endif
