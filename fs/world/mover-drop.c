/* The mover's second part: drops extents that other nodes own and have stored, and finds room for extents to come. */
#include "fs/world/mover-inside.h"

#include "fs/base/clock.h"
#include "fs/base/halt.h"

enum {
    WINDOW = STORED_MOST, /* extents per question */
    /* parts per question: the node that is asked looks at each, while others wait for its answers */
    WINDOW_PARTS = 64 << 10,
    SELDOM_MS = 30000, /* pause after questions that found nothing new */
    REST_PART = 8,     /* after a round of questions, rest for N times its duration */
    HOPELESS_S = 10,   /* without room and without progress at any node */
};

/* Have all nodes that can be asked turned? With `moved`: are their moves also done? */
static bool all_are_there(const struct course *c, bool moved)
{
    const struct living *l = c->living;
    for (uint32_t node = 0; node < c->world->nodes; node++) {
        struct node_news news;
        if (node == c->world->me || fetch_peer_state(l->fetches, node) == PEER_LOST)
            continue;
        if (!news_read(ring_news(&l->link.ring, node), &news) || news.turn != c->world->last.k ||
            (moved && news.moved != c->world->last.k))
            return false;
    }
    return true;
}

/* A copy stays until the second turn after its own, if there is room: epochs that were planned before still read it. */
static bool stays_for_now(const struct course *c, uint64_t extent)
{
    const struct world *w = c->world;
    return owner_before(c, extent) == w->me || (w->earlier && layout_owner(w->earlier, w->group, extent) == w->me);
}

static bool is_foreign(const struct course *c, uint64_t extent)
{
    return c->foreign[extent / 64] >> extent % 64 & 1;
}

static bool may_go(const struct course *c, uint64_t extent, bool all)
{
    return is_foreign(c, extent) && (all || !stays_for_now(c, extent));
}

/* Ask each owner of a droppable extent in this window which extents it has stored. */
static void ask_window(struct course *c, uint64_t first, uint32_t count, bool all, uint64_t *stored)
{
    uint64_t bits[WINDOW / 64], asked[(NODES_MOST + 63) / 64] = {0};
    for (uint64_t e = first; e < first + count; e++) {
        uint32_t owner = may_go(c, e, all) ? owner_now(c, e) : NO_OWNER;
        if (owner == NO_OWNER || asked[owner / 64] >> owner % 64 & 1)
            continue;
        if (is_over(c))
            break;
        asked[owner / 64] |= UINT64_C(1) << owner % 64;
        c->asked++;
        if (fetch_stored(c->living->fetches, owner, first, count, c->world->last.k, bits))
            continue;
        for (uint32_t i = 0; i < (count + 63) / 64; i++)
            stored[i] |= bits[i]; /* each node reports only its own extents */
    }
}

/* Drop all droppable extents of a window together, so that a segment is rewritten once. Returns the bytes. */
static uint64_t drop_window(struct course *c, uint64_t first, uint32_t count, bool all)
{
    const struct self *self = c->mover->self;
    uint64_t stored[WINDOW / 64] = {0}, bytes = 0, from, to;
    ask_window(c, first, count, all, stored);
    halt_at("drop");
    for (uint64_t e = first; e < first + count; e++) {
        if (!may_go(c, e, all) || !(stored[(e - first) / 64] >> (e - first) % 64 & 1))
            continue;
        uint32_t file = extents_file(self->extents, e, &from, &to);
        bytes += store_drop(self->store, file, from, to);
        c->foreign[e / 64] &= ~(UINT64_C(1) << e % 64);
        c->foreigners--;
    }
    return bytes;
}

/* `all`: also extents that should stay for now, and before all moves are done. */
static uint64_t drop_round(struct course *c, bool all)
{
    struct mover *m = c->mover;
    uint64_t dropped = 0, began = clock_now();
    c->asked = 0;
    c->looked = c->foreigners && all_are_there(c, !all);
    if (!c->looked)
        return 0;
    for (uint64_t first = 0, count; first < c->extents && !is_over(c); first += count) {
        count = extents_run(m->self->extents, first, WINDOW, WINDOW_PARTS);
        dropped += drop_window(c, first, (uint32_t)count, all);
    }
    pthread_mutex_lock(&m->lock);
    m->news.dropped_bytes += dropped;
    pthread_mutex_unlock(&m->lock);
    c->rests = clock_now() + REST_PART * (clock_now() - began);
    return dropped;
}

static uint64_t progress_of_others(const struct course *c)
{
    uint64_t sum = 0;
    for (uint32_t node = 0; node < c->world->nodes; node++) {
        struct node_news news;
        if (node != c->world->me && news_read(ring_news(&c->living->link.ring, node), &news))
            sum += news.move.come_bytes + news.move.refused_bytes + news.move.dropped_bytes;
    }
    return sum;
}

static uint64_t bytes_in_tiers(const struct self *self)
{
    struct store_stats stats;
    store_stats(self->store, &stats);
    return stats.tier[TIER_RAM].held + stats.tier[TIER_SSD].held;
}

/* Win back room: rewrite segments with dead values. First drop more, unless that was tried just now; then only if
 * rewriting gave nothing. */
static bool win_room(struct course *c, uint64_t held)
{
    struct store *store = c->mover->self->store;
    bool first = clock_now() >= c->rests;
    uint64_t dropped = first ? drop_round(c, true) : 0;
    if (store_make_room(store) || dropped || bytes_in_tiers(c->mover->self) < held)
        return true;
    return !first && drop_round(c, true) > 0;
}

/* Wait for room as long as any node makes progress: others store what they pull, so that this node may drop it. A tier
 * may also win room by itself, or when a reader has finished with a dropped value. */
bool find_room(struct course *c)
{
    uint64_t held = bytes_in_tiers(c->mover->self), since = clock_now(), others = progress_of_others(c), wait = SOON_MS;
    for (;;) {
        bool last = all_are_there(c, true);
        if (win_room(c, held))
            return true;
        uint64_t now = progress_of_others(c);
        if (now != others)
            since = clock_now();
        others = now;
        if (!c->foreigners || last || clock_now() - since > clock_bound("DEALFS_MOVE_HOPELESS", HOPELESS_S) ||
            !pause_course(c, wait))
            return false;
        wait = 2 * wait < LATER_MS ? 2 * wait : LATER_MS;
    }
}

/* Is the free room smaller than what is still to come? */
static bool needs_room(const struct course *c)
{
    struct store_stats stats;
    uint64_t room = 0;
    store_stats(c->mover->self->store, &stats);
    for (enum tier_name tier = 0; tier < TIERS; tier++)
        if (stats.tier[tier].state == TIER_OPEN && stats.tier[tier].capacity > stats.tier[tier].held)
            room += stats.tier[tier].capacity - stats.tier[tier].held;
    return c->lacking > room;
}

/* Extents that their owner refused may stay for ever. */
void drop_all(struct course *c)
{
    uint64_t wait = LATER_MS;
    bool all = needs_room(c), over = false;
    while (c->foreigners && !over && pause_course(c, wait)) {
        bool dropped = drop_round(c, all) > 0, vain = c->asked && !dropped;
        wait = !vain ? LATER_MS : 2 * wait < SELDOM_MS ? 2 * wait : SELDOM_MS;
        over = c->looked && !c->asked;
    }
}
