/* The mover.
 *
 * Threads: one of its own. It goes through the extents in the order of the catalog, which is nearly that of the
 * segments of their senders, and asks the store for those that this node lacks (mover-pull.c). When a load finds no
 * room, it stops, makes room (mover-drop.c), and resumes there.
 *
 *   a turn ──▶ pull ──▶ done: the next turn may begin ──▶ drop foreign extents, as their owners store them
 *               ▲ │ no room
 *               └─┴─ store and rewrite ─ drop ─ wait for other nodes
 *
 * A foreign extent is held here and owned by another node. A bit set, made once per turn, says which extents are.
 *
 * `lock` is held briefly, and no other lock is taken with it. */
#include "fs/world/mover-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PASSES = 30, /* over extents that could not be fetched */
    OPENING_MS = 15000,
};

/* --- counting --- */

static uint64_t rewritten_bytes(const struct self *self)
{
    struct store_stats stats;
    store_stats(self->store, &stats);
    return stats.tier[TIER_RAM].rewritten + stats.tier[TIER_SSD].rewritten;
}

/* Cached bytes of an extent. */
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

/* Walk over all extents: count what is to come and what has come; mark foreign ones. */
static int count_all(struct course *c, struct move_news *n)
{
    const struct self *self = c->mover->self;
    c->foreigners = c->lacking = 0;
    if (c->foreign)
        memset(c->foreign, 0, foreign_bytes(c));
    for (uint64_t e = 0; e < c->extents; e++) {
        uint64_t from, to;
        if (e % MOVER_STEP == 0 && is_over(c))
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
    LOCK_SCOPE(&m->lock);
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
}

static void end_counting(struct course *c, const struct move_news *now)
{
    struct mover *m = c->mover;
    LOCK_SCOPE(&m->lock);
    m->news.come_bytes = now->come_bytes;
    m->news.come_samples = now->come_samples;
    m->moved = m->k;
    m->took = clock_now() - m->began;
}

static bool is_about(const struct mover *m, const struct world *w)
{
    return memcmp(m->uuid, w->uuid, sizeof m->uuid) == 0;
}

uint64_t mover_moved(struct mover *m, const struct world *w)
{
    LOCK_SCOPE(&m->lock);
    return is_about(m, w) ? m->moved : 0;
}

uint64_t mover_look(struct mover *m, const struct world *w, struct move_news *news)
{
    uint64_t rewritten = rewritten_bytes(m->self), moved = 0;
    *news = (struct move_news){0};
    LOCK_SCOPE(&m->lock);
    bool about = is_about(m, w);
    if (about)
        moved = m->moved;
    if (about && m->k == w->last.k && m->k) {
        *news = m->news;
        news->sent_samples = atomic_load(&m->self->sent_samples) - m->sent_samples;
        news->sent_bytes = atomic_load(&m->self->sent_bytes) - m->sent_bytes;
        news->rewritten_bytes = rewritten - m->rewritten;
        news->nanoseconds = m->took ? m->took : clock_now() - m->began;
    }
    return moved;
}

/* --- the move --- */

static void refuse_rest(struct course *c, uint64_t from)
{
    struct mover *m = c->mover;
    pthread_mutex_lock(&m->lock);
    m->final = true;
    pthread_mutex_unlock(&m->lock);
    if (pull_pass(c, from) == 0)
        log_warning("there is no room for all samples of the move: the rest stays at its old nodes");
}

static uint64_t bytes_come(struct mover *m)
{
    LOCK_SCOPE(&m->lock);
    return m->news.come_bytes;
}

/* Repeat passes, each from the first extent that did not arrive in the previous one. */
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
            log_warning("not all received samples are stored yet");
        now = (struct move_news){0};
        if (!error)
            error = count_all(c, &now);
    }
    halt_at("come");
    if (!error)
        end_counting(c, &now);
    return error;
}

/* If everything was staged before, stage the extents that this node owns and no node had. After a turn for room, all
 * that it brings is staged. */
static void stage_rest(const struct course *c)
{
    struct store *store = c->mover->self->store;
    struct stage_progress progress;
    store_stage_progress(store, &progress);
    int error = store_stage_again(store, progress.round);
    if (error)
        log_error("stage the samples that this node now owns: %s", strerror(-error));
}

/* A tier that the previous server still has open looks empty. */
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
        log_error("samples were moved, but not removed from their old nodes: %s", strerror(ENOMEM));
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

/* --- beginning and end --- */

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
