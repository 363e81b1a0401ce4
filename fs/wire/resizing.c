/* Which node resizes a file. */
#include "fs/wire/resizing.h"

__extension__ typedef unsigned __int128 wide;

static uint64_t filled(const struct resizing_knows *node, uint64_t level)
{
    return node->room < level ? node->room : level;
}

static wide filled_to(const struct resizing_knows *nodes, uint32_t count, uint64_t level)
{
    wide sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += filled(&nodes[i], level);
    return sum;
}

/* Find the level of communicating vessels: the dataset is poured over the rooms, up to the same level in all that are
 * high enough. */
static uint64_t find_level(const struct resizing_knows *nodes, uint32_t count)
{
    uint64_t level = nodes[0].bytes, low = 0;
    while (level - low > 1) {
        uint64_t middle = low + (level - low) / 2;
        if (filled_to(nodes, count, middle) < nodes[0].bytes)
            low = middle;
        else
            level = middle;
    }
    return level;
}

struct resizing_part resizing_part_of(const struct resizing_knows *nodes, uint32_t count, uint32_t node)
{
    uint64_t level = find_level(nodes, count);
    wide sum = filled_to(nodes, count, level), from = node, mine = 1;

    if (sum > 0) {
        from = filled_to(nodes, node, level);
        mine = filled(&nodes[node], level);
    } else {
        sum = count;
    }
    return (struct resizing_part){.from = (uint64_t)((from << 32) / sum),
                                  .to = (uint64_t)(((from + mine) << 32) / sum)};
}

bool resizing_is_in(const struct resizing_part *part, uint32_t place)
{
    uint32_t at = place * UINT32_C(2654435769);
    return at >= part->from && at < part->to;
}
