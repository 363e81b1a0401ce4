#include "fs/world/holdings.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/store/shard.h"

#include <errno.h>

enum {
    TIERS_MS = 15000,
    TIERS_POLL_MS = 20,
    STEP = 4096, /* extents or files between two checks for the end */
};

__extension__ typedef unsigned __int128 wide;

struct extent_held {
    uint64_t cost, missing; /* missing: the part of the cost whose bytes are not cached */
    enum claim claim;       /* never CLAIM_OWNED here */
};

static enum claim claim_of(uint64_t held, uint64_t bytes)
{
    return held == 0 ? CLAIM_NONE : held < bytes ? CLAIM_PART : CLAIM_WHOLE;
}

static struct extent_held look_at_extent(const struct self *self, uint64_t number)
{
    uint64_t from, to, held = 0;
    uint32_t file = extents_file(self->extents, number, &from, &to);
    uint64_t step = catalog_file(self->config.catalog, file).size <= PIECE_BYTES ? EXTENT_BYTES : VALUE_BYTES;
    for (uint64_t at = from; at < to; at += step)
        if (store_holds(self->store, file, at))
            held += to - at < step ? to - at : step;
    uint64_t cost = extents_cost(self->extents, number);
    uint64_t kept = held ? (uint64_t)((wide)cost * held / (to - from)) : 0;
    return (struct extent_held){.cost = cost, .missing = cost - kept, .claim = claim_of(held, to - from)};
}

/* Bytes that stay taken after dead values are reclaimed. A segment is rewritten only if a quarter of it is dead. */
static uint64_t taken_of(const struct tier_status *t)
{
    uint64_t stays = t->dead < t->held / 4 ? t->dead : t->held / 4;
    return t->held - t->dead + stays;
}

struct tiers_look {
    uint64_t capacity, room, taken; /* bytes: capacity; the cost that fits into it; what is already taken */
    bool opening;                   /* a tier is not open yet */
};

/* Room for extents in a tier. With `exchange`, some stays free: new samples arrive before the room of old ones is
 * reclaimed. */
static uint64_t room_of(const struct self *self, uint64_t capacity)
{
    uint64_t room = extents_room(self->extents, capacity);
    uint64_t stays_free = self->config.exchange ? shard_kept_free(capacity) : 0;
    return room > stays_free ? room - stays_free : 0;
}

static struct tiers_look look_at_tiers(const struct self *self, bool now)
{
    struct tiers_look look = {0};
    struct store_stats stats;
    store_stats(self->store, &stats);
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        const struct tier_status *t = &stats.tier[tier];
        uint64_t its = now ? t->held : taken_of(t);
        look.taken += its;
        look.opening |= t->state == TIER_LOCKED;
        if (t->state == TIER_OPEN || t->state == TIER_LOCKED) {
            look.capacity += t->capacity;
            look.room += room_of(self, t->capacity);
        } else if (t->state == TIER_CLOSED) {
            look.capacity += t->held;
            look.room += its;
        }
    }
    return look;
}

uint64_t holdings_capacity(const struct self *self)
{
    return look_at_tiers(self, true).capacity;
}

void holdings_wait(const struct talk *t)
{
    uint64_t begin = clock_now();
    while (!atomic_load(&t->stop) && clock_now() - begin < TIERS_MS * MILLISECOND) {
        if (!look_at_tiers(t->self, true).opening)
            return;
        struct pollfd wake = {.fd = t->wake, .events = POLLIN};
        ready_wait(&wake, 1, TIERS_POLL_MS);
    }
}

int holdings_look(const struct talk *t, const struct world *last, uint64_t *claims, struct holding *holding)
{
    const struct self *self = t->self;
    uint64_t extents = extents_count(self->extents);
    struct holding h = {0};
    for (uint64_t e = 0; e < extents; e++) {
        if (e % STEP == 0 && talk_is_over(t))
            return -ECONNRESET;
        struct extent_held extent = look_at_extent(self, e);
        if (extent.claim == CLAIM_NONE)
            continue;
        if (extent.claim == CLAIM_WHOLE && last && world_keeps(last, e))
            extent.claim = CLAIM_OWNED;
        claims[e / CLAIMS_A_WORD] |= (uint64_t)extent.claim << e % CLAIMS_A_WORD * 2;
        h.cost += extent.cost;
        h.taken += extent.missing;
    }
    struct tiers_look look = look_at_tiers(self, false);
    h.room = look.room;
    h.taken += look.taken;
    *holding = h;
    return 0;
}

int holdings_room(const struct talk *t, const struct world *w, uint64_t *room)
{
    const struct self *self = t->self;
    uint64_t missing = 0, extents = extents_count(self->extents);
    for (uint64_t e = 0; e < extents; e++) {
        if (e % STEP == 0 && talk_is_over(t))
            return -ECONNRESET;
        if (world_keeps(w, e))
            missing += look_at_extent(self, e).missing;
    }
    struct tiers_look look = look_at_tiers(self, true);
    uint64_t taken = look.taken + missing;
    *room = look.room > taken ? look.room - taken : 0;
    return 0;
}

static uint64_t trim_all(const struct talk *t, bool only_count)
{
    uint64_t bytes = 0;
    uint32_t files = catalog_files(t->self->config.catalog);
    for (uint32_t file = 0; file < files && !talk_is_over(t); file += STEP)
        bytes += store_trim(t->self->store, file, STEP, only_count);
    return bytes;
}

void holdings_trim(const struct talk *t, const struct world *w)
{
    uint64_t foreign = trim_all(t, true);
    if (!foreign || layout_owned(w->layout, w->me) + foreign <= look_at_tiers(t->self, false).room)
        return;
    uint64_t dropped = trim_all(t, false);
    log_info("dropped %llu bytes that other nodes cache", (unsigned long long)dropped);
}
