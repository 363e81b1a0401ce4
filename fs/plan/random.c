/* MT19937 (Matsumoto and Nishimura, 1998). */
#include "fs/plan/random.h"

void mt_seed(struct mt19937 *mt, uint64_t seed)
{
    mt->word[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < MT_WORDS; i++)
        mt->word[i] = 1812433253u * (mt->word[i - 1] ^ mt->word[i - 1] >> 30) + i;
    mt->next = MT_WORDS;
}

static inline uint32_t mt_twist(uint32_t high, uint32_t low, uint32_t far)
{
    uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ mixed >> 1 ^ (-(low & 1u) & 0x9908b0dfu);
}

void mt_refill(struct mt19937 *mt)
{
    uint32_t *w = mt->word;
    for (int i = 0; i < MT_WORDS - MT_SHIFT; i++)
        w[i] = mt_twist(w[i], w[i + 1], w[i + MT_SHIFT]);
    for (int i = MT_WORDS - MT_SHIFT; i < MT_WORDS - 1; i++)
        w[i] = mt_twist(w[i], w[i + 1], w[i + MT_SHIFT - MT_WORDS]);
    w[MT_WORDS - 1] = mt_twist(w[MT_WORDS - 1], w[0], w[MT_SHIFT - 1]);
    for (int i = 0; i < MT_WORDS; i++) {
        uint32_t y = w[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        mt->drawn[i] = y ^ y >> 18;
    }
    mt->next = 0;
}
