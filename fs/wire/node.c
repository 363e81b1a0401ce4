#include "fs/wire/node.h"

void holders_note(uint16_t *holder, uint64_t extents, uint32_t nodes, uint32_t groups, uint32_t node,
                  const uint64_t *bits)
{
    uint16_t *of_group = holder + node_group(node, nodes, groups) * extents;
    for (uint64_t word = 0; word * 64 < extents; word++) {
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            uint64_t extent = word * 64 + (uint64_t)__builtin_ctzll(left);
            if (extent < extents && of_group[extent] == NO_OWNER)
                of_group[extent] = (uint16_t)node;
        }
    }
}
