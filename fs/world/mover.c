/* The mover.
 *
 * Threads: one of its own. It walks over the extents, in the order of the catalog, which is about that of the segments
 * from which they come, and asks the store for what is to come, at most MOST_OUT bytes ahead. The loader's threads tell
 * what came (mover_pulled). When a load finds no room it stops, gets room, and goes on from there.
 *
 *   a turn ──▶ pull ──▶ done: the next turn may come ──▶ what is foreign is dropped, as its owners have stored it
 *               ▲ │ no room
 *               └─┴─ store and rewrite ─ drop ─ wait for others
 *
 * What is foreign: held here, and owned by another node. A set of bits says which extents are; it is made once a turn.
 *
 * `lock` is held for moments, and none with it. */
#include "fs/world/mover.h"

#include "fs/base/clock.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OUT = 64 << 20, /* bytes that are pulled at once */
    MOST_LOADS = 256,
    WINDOW = STORED_MOST,    /* extents in one question */
    WINDOW_PARTS = 64 << 10, /* and their parts: who is asked looks at each, while others wait for its answers */
    STEP = 4096,             /* extents between two looks at whether it is over */
    MOST_PASSES = 30,        /* over what could not be had */
    SOON_MS = 20,
    LATER_MS = 1000,
    SELDOM_MS = 30000, /* where those that were asked have stored nothing new */
    OPENING_MS = 15000,
    REST_PART = 8,       /* of each round of questions: rest so many times as long as it took */
    HOPELESS_MS = 10000, /* without room, and nothing moves anywhere */
    BURST_MS = 100,      /* of what may come in a second */
};

struct mover {
    struct self *self;
    struct membership *membership;
    pthread_t thread;
    bool runs;
    atomic_bool stop;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t back;  /* pulls have ended */
    uint8_t uuid[16];     /* of the world that `moved` and `news` are about */
    uint64_t k, moved;
    struct move_news news;
    uint64_t began, took;                         /* took: 0 while bytes are to come */
    uint64_t sent_samples, sent_bytes, rewritten; /* before the turn */
    uint32_t number;                              /* of the pull */
    uint64_t out;                                 /* bytes that were asked for and have not ended */
    int loads;
    bool cramped, final;    /* a load found no room; then it is counted, and no more is done about it */
    uint64_t first_cramped; /* extent */
    uint64_t first_failed;  /* extent that could not be had just now; UINT64_MAX: none */
};

/* One move, by the thread. */
struct course {
    struct mover *mover;
    struct world *world;
    struct living *living;
    uint64_t changes; /* of the membership: another number, and it is over */
    uint64_t extents;
    uint64_t *foreign; /* bits */
    uint64_t foreigners;
    uint64_t lacking; /* bytes that are owned and not held */
    bool looked;      /* the last round of dropping looked at all, */
    uint64_t asked;   /* and asked so many questions */
    uint64_t rests;   /* until when there should be no other */
    uint64_t paid;    /* until when the rate is used up */
};

static bool is_over(const struct course *c)
{
    return !membership_stays(c->mover->membership, c->changes, 0);
}

/* Who owns it now, or did before. */
static uint32_t owner_now(const struct course *c, uint64_t extent)
{
    return layout_owner(c->world->layout, c->world->group, extent);
}

static uint32_t owner_before(const struct course *c, uint64_t extent)
{
    const struct world *w = c->world;
    return w->before ? layout_owner(w->before, w->group, extent) : NO_OWNER;
}

static bool is_to_come(const struct course *c, uint64_t extent)
{
    uint32_t before = owner_before(c, extent);
    return owner_now(c, extent) == c->world->me && before != c->world->me && before != NO_OWNER;
}

/* Counting. */

static uint64_t rewritten_bytes(const struct self *self)
{
    struct store_stats stats;
    store_stats(self->store, &stats);
    return stats.tier[TIER_RAM].rewritten + stats.tier[TIER_SSD].rewritten;
}

/* How much of an extent is held. */
static uint64_t held_bytes(const struct self *self, uint32_t file, uint64_t from, uint64_t to)
{
    uint64_t step = catalog_file(self->config.catalog, file).size <= PIECE_BYTES ? EXTENT_BYTES : VALUE_BYTES, held = 0;
    for (uint64_t at = from; at < to; at += step)
        if (store_holds(self->store, file, at))
            held += to - at < step ? to - at : step;
    return held;
}

static size_t foreign_bytes(const struct course *c)
{
    return (c->extents / 64 + 1) * sizeof *c->foreign;
}

/* A walk over all: what is to come, and has come; and what is foreign. A sample counts with its first byte. */
static int count_all(struct course *c, struct move_news *n)
{
    const struct self *self = c->mover->self;
    c->foreigners = c->lacking = 0;
    if (c->foreign)
        memset(c->foreign, 0, foreign_bytes(c));
    for (uint64_t e = 0; e < c->extents; e++) {
        uint64_t from, to;
        if (e % STEP == 0 && is_over(c))
            return -ECANCELED;
        uint32_t owner = owner_now(c, e);
        bool ours = owner == c->world->me, comes = ours && is_to_come(c, e);
        uint32_t file = extents_file(self->extents, e, &from, &to);
        uint64_t held = held_bytes(self, file, from, to);
        c->lacking += ours ? to - from - held : 0;
        if (!ours && held && owner != NO_OWNER && c->foreign) {
            c->foreign[e / 64] |= UINT64_C(1) << e % 64;
            c->foreigners++;
        }
        if (!comes)
            continue;
        n->bytes += to - from;
        n->samples += from == 0;
        n->come_bytes += held;
        n->come_samples += from == 0 && held;
    }
    return 0;
}

static void begin_counting(struct course *c)
{
    struct mover *m = c->mover;
    uint64_t rewritten = rewritten_bytes(m->self);
    pthread_mutex_lock(&m->lock);
    memcpy(m->uuid, c->world->uuid, sizeof m->uuid);
    m->k = c->world->last.k;
    m->moved = c->world->before ? m->k - 1 : m->k;
    m->news = (struct move_news){0};
    m->began = clock_now();
    m->took = 0;
    m->sent_samples = atomic_load(&m->self->sent_samples);
    m->sent_bytes = atomic_load(&m->self->sent_bytes);
    m->rewritten = rewritten;
    m->number++;
    m->out = 0;
    m->loads = 0;
    m->final = false;
    pthread_mutex_unlock(&m->lock);
}

static void end_counting(struct course *c, const struct move_news *now)
{
    struct mover *m = c->mover;
    pthread_mutex_lock(&m->lock);
    m->news.come_bytes = now->come_bytes;
    m->news.come_samples = now->come_samples;
    m->moved = m->k;
    m->took = clock_now() - m->began;
    pthread_mutex_unlock(&m->lock);
}

uint64_t mover_look(struct mover *m, const struct world *w, struct move_news *news)
{
    uint64_t rewritten = rewritten_bytes(m->self), moved = 0;
    *news = (struct move_news){0};
    pthread_mutex_lock(&m->lock);
    bool about = memcmp(m->uuid, w->uuid, sizeof m->uuid) == 0;
    if (about)
        moved = m->moved;
    if (about && m->k == w->last.k && m->k) {
        *news = m->news;
        news->sent_samples = atomic_load(&m->self->sent_samples) - m->sent_samples;
        news->sent_bytes = atomic_load(&m->self->sent_bytes) - m->sent_bytes;
        news->rewritten_bytes = rewritten - m->rewritten;
        news->nanoseconds = m->took ? m->took : clock_now() - m->began;
    }
    pthread_mutex_unlock(&m->lock);
    return moved;
}

/* Pulling. */

/* With the lock: it is tried again. */
static void note_failed(struct mover *m, uint64_t extent)
{
    m->first_failed = m->first_failed < extent ? m->first_failed : extent;
}

void mover_pulled(struct mover *m, uint32_t number, uint32_t file, uint64_t offset, uint32_t length, int error)
{
    uint64_t extent = extents_at(m->self->extents, file, offset);
    pthread_mutex_lock(&m->lock);
    if (number == m->number) {
        struct move_news *n = &m->news;
        m->loads--;
        m->out -= length;
        if (!error) {
            n->come_bytes += length;
            n->come_samples += offset == 0;
        } else if (error == -ENOSPC && m->final) {
            n->refused_bytes += length;
            n->refused_samples += offset == 0;
        } else if (error == -ENOSPC) {
            m->first_cramped = m->cramped && m->first_cramped < extent ? m->first_cramped : extent;
            m->cramped = true;
        } else if (error == -EBUSY || error == -EAGAIN || error == -ETIMEDOUT || error == -EHOSTUNREACH) {
            note_failed(m, extent);
        }
        pthread_cond_signal(&m->back);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Until no more than that is on its way. */
static void wait_for_pulls(struct course *c, uint64_t bytes, int loads)
{
    struct mover *m = c->mover;
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&m->stop) && m->loads && (m->out > bytes || m->loads > loads))
        pthread_cond_wait(&m->back, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

static void pay(struct course *c, uint64_t bytes)
{
    struct mover *m = c->mover;
    uint64_t rate = m->self->config.exchange_rate, now = clock_now(), burst = BURST_MS * MILLISECOND;
    if (!rate)
        return;
    c->paid = c->paid > now ? c->paid : now;
    c->paid += (uint64_t)((double)bytes / (double)rate * (double)SECOND);
    if (c->paid > now + burst)
        membership_stays(m->membership, c->changes, c->paid - burst - now);
}

/* Pieces are small enough for the bound on what is on its way. What is counted first may come back earlier. */
static int pull_piece(struct course *c, uint32_t file, uint64_t from, uint64_t to)
{
    struct mover *m = c->mover;
    uint64_t held = 0;
    int most = (int)((to - from + VALUE_BYTES - 1) / VALUE_BYTES);
    wait_for_pulls(c, MOST_OUT - (to - from), MOST_LOADS);
    pthread_mutex_lock(&m->lock);
    m->out += to - from;
    m->loads += most;
    uint32_t number = m->number;
    pthread_mutex_unlock(&m->lock);
    int loads = store_pull(m->self->store, number, file, from, to, &held);
    pthread_mutex_lock(&m->lock);
    m->loads -= most - (loads > 0 ? loads : 0);
    m->out -= loads > 0 ? held : to - from;
    pthread_mutex_unlock(&m->lock);
    if (loads > 0)
        pay(c, to - from - held);
    return loads < 0 ? loads : 0;
}

static int pull_extent(struct course *c, uint64_t extent)
{
    uint64_t from, to;
    halt_at("pull");
    uint32_t file = extents_file(c->mover->self->extents, extent, &from, &to);
    int error = 0;
    for (uint64_t at = from; at < to && !error; at += PIECE_BYTES)
        error = pull_piece(c, file, at, to - at < PIECE_BYTES ? to : at + PIECE_BYTES);
    if (error != -ENOMEM)
        return error;
    pthread_mutex_lock(&c->mover->lock);
    note_failed(c->mover, extent);
    pthread_mutex_unlock(&c->mover->lock);
    return 0;
}

static bool is_cramped(struct mover *m)
{
    pthread_mutex_lock(&m->lock);
    bool cramped = m->cramped;
    pthread_mutex_unlock(&m->lock);
    return cramped;
}

/* From that extent on, as far as there is room, and until what was asked for has ended. */
static int pull_pass(struct course *c, uint64_t from)
{
    struct mover *m = c->mover;
    int error = 0;
    pthread_mutex_lock(&m->lock);
    m->cramped = false;
    m->first_failed = UINT64_MAX;
    m->out = 0;
    pthread_mutex_unlock(&m->lock);
    for (uint64_t e = from; e < c->extents && !error && !is_cramped(m); e++) {
        if (is_to_come(c, e))
            error = pull_extent(c, e);
        if ((e % STEP == 0 || is_to_come(c, e)) && is_over(c))
            error = -ECANCELED;
    }
    if (error)
        store_forget_pull(m->self->store, m->number);
    else
        wait_for_pulls(c, 0, 0);
    return error;
}

/* Dropping. */

/* Have all that can be asked turned; and with `moved`, are their moves done? */
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

/* A copy stays until the second turn after the one that took it away, as far as there is room: epochs that were planned
 * before it are still read. */
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

/* Which of a window's extents their owners have stored, of each that has some that may go. */
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
            stored[i] |= bits[i]; /* each tells of its own alone */
    }
}

/* All of a window at once: a segment is then written again once. Returns the bytes. */
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

/* `all`: also what would rather stay for now, and before all has moved. */
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

/* Room. */

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

/* False: it is over, for good or for this move. */
static bool pause_course(struct course *c, uint64_t milliseconds)
{
    return membership_stays(c->mover->membership, c->changes, milliseconds * MILLISECOND);
}

static uint64_t bytes_in_tiers(const struct self *self)
{
    struct store_stats stats;
    store_stats(self->store, &stats);
    return stats.tier[TIER_RAM].held + stats.tier[TIER_SSD].held;
}

/* What is dead is won back; more dies first, but where that was looked at just now only if there is nothing else. */
static bool win_room(struct course *c, uint64_t held)
{
    struct store *store = c->mover->self->store;
    bool first = clock_now() >= c->rests;
    uint64_t dropped = first ? drop_round(c, true) : 0;
    if (store_make_room(store) || dropped || bytes_in_tiers(c->mover->self) < held)
        return true;
    return !first && drop_round(c, true) > 0;
}

/* False: there will be none. Others store what they pull, and drop what this node has stored: so there is hope as long
 * as anything moves anywhere. A tier also wins room by itself, or a while later, where a reader was at what goes. */
static bool find_room(struct course *c)
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
        if (!c->foreigners || last || clock_now() - since > HOPELESS_MS * MILLISECOND || !pause_course(c, wait))
            return false;
        wait = 2 * wait < LATER_MS ? 2 * wait : LATER_MS;
    }
}

/* The move. */

static void refuse_rest(struct course *c, uint64_t from)
{
    struct mover *m = c->mover;
    pthread_mutex_lock(&m->lock);
    m->final = true;
    pthread_mutex_unlock(&m->lock);
    if (pull_pass(c, from) == 0)
        log_warning("no room for all that was to come: what is left stays where it was");
}

static uint64_t bytes_come(struct mover *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t bytes = m->news.come_bytes;
    pthread_mutex_unlock(&m->lock);
    return bytes;
}

/* Passes over what is to come, from the first that did not come in the last one. */
static int pull_all(struct course *c)
{
    struct mover *m = c->mover;
    uint64_t from = 0;
    for (int passes = 0; passes < MOST_PASSES;) {
        uint64_t come = bytes_come(m);
        int error = pull_pass(c, from);
        if (error)
            return error;
        pthread_mutex_lock(&m->lock);
        bool cramped = m->cramped;
        uint64_t failed = m->first_failed;
        from = cramped && m->first_cramped < failed ? m->first_cramped : failed;
        pthread_mutex_unlock(&m->lock);
        if (from == UINT64_MAX)
            break;
        if (cramped && bytes_come(m) == come && !find_room(c)) {
            refuse_rest(c, from);
            break;
        }
        if (!cramped && (passes++, !pause_course(c, LATER_MS)))
            break;
    }
    return is_over(c) ? -ECANCELED : 0;
}

static int move_bytes(struct course *c)
{
    struct mover *m = c->mover;
    struct move_news now = {0};
    int error = count_all(c, &now);
    if (error)
        return error;
    pthread_mutex_lock(&m->lock);
    m->news.bytes = now.bytes;
    m->news.samples = now.samples;
    m->news.come_bytes = now.come_bytes;
    m->news.come_samples = now.come_samples;
    pthread_mutex_unlock(&m->lock);
    if (now.come_bytes < now.bytes) {
        error = pull_all(c);
        if (!error && store_flush(m->self->store))
            log_warning("what came is not all stored yet");
        now = (struct move_news){0};
        if (!error)
            error = count_all(c, &now);
    }
    halt_at("come");
    if (!error)
        end_counting(c, &now);
    return error;
}

/* Is there less of it than is still to be held here? */
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

/* Until nothing is left that should go, or the next turn comes. What found no room with its owner may stay for ever. */
static void drop_all(struct course *c)
{
    uint64_t wait = LATER_MS;
    bool all = needs_room(c), over = false;
    while (c->foreigners && !over && pause_course(c, wait)) {
        bool dropped = drop_round(c, all) > 0, vain = c->asked && !dropped;
        wait = !vain ? LATER_MS : 2 * wait < SELDOM_MS ? 2 * wait : SELDOM_MS;
        over = c->looked && !c->asked;
    }
}

/* What is owned and did not come, and nobody had, is staged where all was. A turn for room stages what it brings at
 * once. */
static void stage_rest(const struct course *c)
{
    struct store *store = c->mover->self->store;
    struct stage_progress progress;
    store_stage_progress(store, &progress);
    int error = store_stage_again(store, progress.round);
    if (error)
        log_error("stage what has become this node's: %s", strerror(-error));
}

/* A tier that the server before this one still has open seems empty. */
static void wait_for_tiers(struct course *c)
{
    uint64_t began = clock_now();
    while (store_is_opening(c->mover->self->store) && clock_now() - began < OPENING_MS * MILLISECOND &&
           pause_course(c, SOON_MS))
        ;
}

static void run_course(struct course *c)
{
    struct mover *m = c->mover;
    c->extents = extents_count(m->self->extents);
    c->foreign = malloc(foreign_bytes(c));
    c->foreigners = c->rests = 0;
    if (!c->foreign)
        log_error("samples are moved, but not dropped where they were: %s", strerror(ENOMEM));
    wait_for_tiers(c);
    bool moved = move_bytes(c) == 0;
    if (moved && c->world->last.turn.cause != TURN_ROOM)
        stage_rest(c);
    if (moved && c->foreign)
        drop_all(c);
    free(c->foreign);
}

static void *mover_main(void *argument)
{
    struct course c = {.mover = argument};
    while (membership_next(c.mover->membership, &c.changes, &c.world, &c.living)) {
        begin_counting(&c);
        serve_turn(c.living->serves, c.world);
        if (c.world->before)
            run_course(&c);
        world_put(c.world);
        living_put(c.living);
    }
    return NULL;
}

/* Beginning and end. */

int mover_create(struct self *self, struct membership *membership, struct mover **out)
{
    struct mover *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->self = self;
    m->membership = membership;
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->back);
    *out = m;
    return 0;
}

int mover_start(struct mover *m)
{
    int error = thread_create(&m->thread, "mover", mover_main, m);
    m->runs = !error;
    return error;
}

void mover_stop(struct mover *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->stop, true);
    pthread_cond_broadcast(&m->back);
    pthread_mutex_unlock(&m->lock);
    if (m->runs)
        pthread_join(m->thread, NULL);
    m->runs = false;
}

void mover_destroy(struct mover *m)
{
    if (!m)
        return;
    pthread_cond_destroy(&m->back);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
