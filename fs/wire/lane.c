/* Memory of a lane: its head, the slots, and from the next page on one buffer per slot. READs that fail. */
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

/* False: it is no READ. */
static bool read_range(const struct fuse_in_header *in, uint64_t *from, uint64_t *to)
{
    const struct fuse_read_in *read = (const void *)(in + 1);
    if (in->opcode != FUSE_READ || in->len < sizeof *in + sizeof *read)
        return false;
    *from = read->offset;
    *to = read->offset + read->size;
    return *to > *from;
}

void lane_bar_read(struct lane *lane, const struct fuse_in_header *request, bool whole, uint64_t until)
{
    struct lane_bar *bar = &lane->bar[0];
    uint64_t from, to;
    if (!read_range(request, &from, &to))
        return;
    for (int i = 1; i < LANE_BARS; i++)
        if (atomic_load(&lane->bar[i].until) < atomic_load(&bar->until))
            bar = &lane->bar[i];
    atomic_store(&bar->until, 0);
    atomic_store(&bar->ino, request->nodeid);
    atomic_store(&bar->from, whole ? 0 : from);
    atomic_store(&bar->to, whole ? UINT64_MAX : to);
    atomic_store(&bar->until, until);
    if (until > atomic_load(&lane->barred))
        atomic_store(&lane->barred, until);
}

bool lane_bars(const struct lane *lane, const struct fuse_in_header *request, uint64_t now)
{
    uint64_t from, to;
    if (now >= atomic_load_explicit(&lane->barred, memory_order_relaxed) || !read_range(request, &from, &to))
        return false;
    for (int i = 0; i < LANE_BARS; i++) {
        const struct lane_bar *bar = &lane->bar[i];
        if (now < atomic_load(&bar->until) && request->nodeid == atomic_load(&bar->ino) &&
            from < atomic_load(&bar->to) && to > atomic_load(&bar->from))
            return true;
    }
    return false;
}
