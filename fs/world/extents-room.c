/* How much of a tier can be dealt. */
#include "fs/world/extents.h"

#include "fs/store/tier.h"

uint64_t extents_room(const struct extents *e, uint64_t capacity)
{
    /* What comes next may not fit into a segment that is more than half empty. */
    uint64_t segments = capacity ? 2 * (capacity / tier_segment_bytes(capacity) + 1) : 0;
    uint64_t lost = segments * SEGMENT_COST + extents_piece_cost(e);
    return capacity > lost ? capacity - lost : 0;
}
