#include "fs/wire/node.h"

void claims_merge(struct claims_merged *m, uint32_t nodes, uint32_t groups, uint32_t node, const uint64_t *claims)
{
    uint32_t group = node_group(node, nodes, groups);
    uint16_t *holder = m->holder + group * m->extents;
    uint64_t *best = m->best + group * claims_words(m->extents);
    for (uint64_t word = 0; word < claims_words(m->extents); word++) {
        for (uint64_t left = claims[word]; left;) {
            unsigned at = (unsigned)__builtin_ctzll(left) & ~1u;
            uint64_t extent = word * CLAIMS_A_WORD + at / 2, mask = UINT64_C(3) << at;
            if (extent < m->extents && (claims[word] & mask) > (best[word] & mask)) {
                best[word] = (best[word] & ~mask) | (claims[word] & mask);
                holder[extent] = (uint16_t)node;
            }
            left &= ~mask;
        }
    }
}
