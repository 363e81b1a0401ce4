/* Memory of a lane: its head, the slots, and from the next page on one buffer per slot. */
#include "fs/wire/lane.h"

enum { PAGE = 4096 };

size_t lane_size(uint32_t count, uint32_t room)
{
    size_t head = (sizeof(struct lane) + count * sizeof(struct slot) + PAGE - 1) & ~(size_t)(PAGE - 1);
    return head + (size_t)count * room;
}

void lane_init(struct lane *lane, uint32_t count, uint32_t room)
{
    lane->count = count;
    lane->room = room;
    lane->slots = sizeof *lane;
    lane->buffers = lane_size(count, 0);
}
