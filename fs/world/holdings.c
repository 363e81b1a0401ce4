/* What this node holds, extent by extent. These are walks over all of them, by the conversation's thread. */
#include "fs/world/talk-inside.h"

#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <poll.h>

enum { TIERS_MS = 15000, TIERS_POLL_MS = 20 };

__extension__ typedef unsigned __int128 wide;

struct extent {
    uint64_t cost, missing; /* missing: the part of the cost that is not held */
    bool any;               /* a byte of it is held */
};

static struct extent look_at(struct peers *p, uint64_t number)
{
    uint64_t from, to, held = 0;
    uint32_t file = extents_file(p->extents, number, &from, &to);
    uint64_t step = catalog_file(p->config.catalog, file).size <= PIECE_BYTES ? EXTENT_BYTES : VALUE_BYTES;
    for (uint64_t at = from; at < to; at += step)
        if (store_holds(p->store, file, at))
            held += to - at < step ? to - at : step;
    uint64_t cost = extents_cost(p->extents, number);
    uint64_t kept = held ? (uint64_t)((wide)cost * held / (to - from)) : 0;
    return (struct extent){.cost = cost, .missing = cost - kept, .any = held > 0};
}

/* What is dead is reclaimed where it is a quarter of a segment; less may stay. */
static uint64_t taken_of(const struct tier_status *t)
{
    uint64_t stays = t->dead < t->held / 4 ? t->dead : t->held / 4;
    return t->held - t->dead + stays;
}

/* The tiers: how much cost fits into them, and what of it is taken already, now or when all is reclaimed. */
static void look_at_tiers(struct peers *p, bool now, uint64_t *room, uint64_t *taken)
{
    struct store_stats stats;
    store_stats(p->store, &stats);
    *room = *taken = 0;
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        const struct tier_status *t = &stats.tier[tier];
        uint64_t its = now ? t->held : taken_of(t);
        *taken += its;
        if (t->state == TIER_OPEN || t->state == TIER_LOCKED)
            *room += extents_room(p->extents, t->capacity);
        else if (t->state == TIER_CLOSED)
            *room += its;
    }
}

void holdings_wait(struct talk *t)
{
    uint64_t capacity, begin = clock_now();
    bool opening = true;
    while (!atomic_load(&t->stop) && clock_now() - begin < TIERS_MS * UINT64_C(1000000)) {
        peers_capacity(t->peers, &capacity, &opening);
        if (!opening)
            return;
        struct pollfd wake = {.fd = t->wake, .events = POLLIN};
        poll(&wake, 1, TIERS_POLL_MS);
    }
}

int holdings_look(struct talk *t, uint64_t *bits, struct holding *holding)
{
    struct peers *p = t->peers;
    struct holding h = {0};
    uint64_t extents = extents_count(p->extents);
    for (uint64_t e = 0; e < extents; e++) {
        if (e % STEP == 0 && talk_is_over(t))
            return -ECONNRESET;
        struct extent extent = look_at(p, e);
        if (!extent.any)
            continue;
        bits[e / 64] |= UINT64_C(1) << e % 64;
        h.cost += extent.cost;
        h.taken += extent.missing;
    }
    uint64_t taken;
    look_at_tiers(p, false, &h.room, &taken);
    h.taken += taken;
    *holding = h;
    return 0;
}

int holdings_room(struct talk *t, const struct world *w, uint64_t *to)
{
    struct peers *p = t->peers;
    uint64_t room, taken, missing = 0, extents = extents_count(p->extents);
    for (uint64_t e = 0; e < extents; e++) {
        if (e % STEP == 0 && talk_is_over(t))
            return -ECONNRESET;
        if (world_keeps(w, e))
            missing += look_at(p, e).missing;
    }
    look_at_tiers(p, true, &room, &taken);
    taken += missing;
    *to = room > taken ? room - taken : 0;
    return 0;
}

static uint64_t trim(struct talk *t, bool only_count)
{
    uint64_t bytes = 0;
    uint32_t files = catalog_files(t->peers->config.catalog);
    for (uint32_t file = 0; file < files && !talk_is_over(t); file += STEP)
        bytes += store_trim(t->peers->store, file, STEP, only_count);
    return bytes;
}

void holdings_trim(struct talk *t, const struct world *w, bool always)
{
    uint64_t room, taken;
    uint64_t foreign = trim(t, true);
    look_at_tiers(t->peers, false, &room, &taken);
    if (!foreign || (!always && w->owned[w->me] + foreign <= room))
        return;
    uint64_t dropped = trim(t, false);
    if (always)
        store_reclaim(t->peers->store);
    log_info("%llu bytes that other nodes keep were dropped", (unsigned long long)dropped);
}
