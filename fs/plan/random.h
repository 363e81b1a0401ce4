/* The generators that plans draw from, specified so that every node, build and machine draws the same. */
#ifndef FS_PLAN_RANDOM_H
#define FS_PLAN_RANDOM_H

#include <stdint.h>

/* MT19937 as PyTorch's CPU generator has it: of the seed the lower 32 bits count. */
enum { MT_WORDS = 624, MT_SHIFT = 397 };
struct mt19937 {
    uint32_t word[MT_WORDS];  /* the state */
    uint32_t drawn[MT_WORDS]; /* what the state gives, tempered */
    unsigned next;            /* of `drawn`; MT_WORDS: all are used */
};

void mt_seed(struct mt19937 *mt, uint64_t seed);
void mt_refill(struct mt19937 *mt);

static inline uint32_t mt_next(struct mt19937 *mt)
{
    if (mt->next == MT_WORDS)
        mt_refill(mt);
    return mt->drawn[mt->next++];
}

/* What is drawn at a place of a sequence, whatever was drawn elsewhere: SplitMix64's number `position` of the stream
 * that seed and use name. */
enum random_use { RANDOM_EXAMPLES = 1, RANDOM_BATCHES, RANDOM_BUFFER };
uint64_t random_at(uint64_t seed, enum random_use use, uint64_t position);

#endif
