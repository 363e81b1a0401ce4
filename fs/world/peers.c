/* Peers: assembly, the timer thread, the store's questions to other nodes, and views for status.
 *
 * The timer thread times out silent nodes, sends queued messages, publishes this node's news, and on node 0 asks for a
 * turn when all shards are filled. It ticks often enough that no reader waits longer than peer_timeout. It sleeps while
 * no world lives. */
#include "fs/world/peers.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/world/peers-inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORTEST_TICK_MS = 2,
    LONGEST_TICK_MS = 500,
    NEWS_MS = 1000,
    TICKS_A_TIMEOUT = 16,
    ASK_AGAIN_MS = 5000,
    FAILED_NEWS_S = 600,
    COURIER_LOOK_MS = 20
};

/* --- for the store --- */

static bool peers_keep(void *user, uint32_t file, uint64_t offset)
{
    struct peers *p = user;
    CLEANUP_WORLD struct world *w = membership_world(&p->membership);
    return !w || world_keeps(w, extents_at(p->self.extents, file, offset));
}

static int peers_fetch(void *user, struct store_read *read)
{
    struct peers *p = user;
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    return l ? fetch_ask(l->fetches, read) : -ENOTCONN;
}

static bool peers_cancel(void *user, struct store_read *read)
{
    struct peers *p = user;
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    return l && fetch_cancel(l->fetches, read);
}

static int peers_before(void *user, const struct value_run *run, stored_take take, void *to)
{
    struct peers *p = user;
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    return l ? fetch_before(l->fetches, run, take, to) : -ENOENT;
}

static void peers_pulled(void *user, uint32_t number, const struct span *span, int error)
{
    mover_pulled(((struct peers *)user)->mover, number, span, error);
}

/* --- news and the timer --- */

/* What all nodes learn about this one. */
static void peers_news(struct peers *p, const struct world *w, struct node_news *news)
{
    const struct self *self = &p->self;
    struct store_stats stats;
    struct stage_progress stage;
    store_stats(self->store, &stats);
    store_stage_progress(self->store, &stage);
    *news = (struct node_news){
        .source_samples = stats.source_samples,
        .source_bytes = stats.source_bytes,
        .staging = stage.state,
        .stage_bytes = stage.bytes,
        .stage_total = stage.bytes_total,
        .stage_files = stage.files,
        .stage_files_total = stage.files_total,
        .stage_kept = stage.kept,
        .stage_failed = stage.failed,
        .stage_round = stage.round,
    };
    news->turn = w->last.k;
    news->moved = mover_look(p->mover, w, &news->move);
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        news->held += stats.tier[tier].held;
        news->capacity += stats.tier[tier].capacity;
    }
    for (enum place place = 0; place < PLACES; place++) {
        news->reads[place] = stats.reads[place];
        news->bytes[place] = stats.bytes[place];
    }
}

/* Sent even without changes: the increasing version shows the courier that this server lives. */
static void tell_news(struct peers *p, struct living *l)
{
    struct node_news now;
    CLEANUP_WORLD struct world *w = membership_world(&p->membership);
    peers_news(p, w, &now);
    news_write(ring_news(&l->link.ring, l->world->me), &now);
    atomic_store(&p->self.moved, now.moved);
    l->turn = now.turn;
}

/* News of a turn are sent at once: other nodes wait for them. */
static bool has_turned(struct peers *p, const struct living *l)
{
    CLEANUP_WORLD struct world *w = membership_world(&p->membership);
    return l->turn != w->last.k || mover_moved(p->mover, w) != atomic_load(&p->self.moved);
}

static bool others_are_done(struct living *l, uint64_t round)
{
    for (uint32_t node = 0; node < l->world->nodes; node++) {
        struct node_news news;
        if (node == l->world->me || fetch_peer_state(l->fetches, node) == PEER_LOST)
            continue;
        if (!news_read(ring_news(&l->link.ring, node), &news) || news.staging != STAGE_DONE || news.stage_round < round)
            return false;
    }
    return true;
}

static bool has_tried(struct membership *m, uint64_t round)
{
    LOCK_SCOPE(&m->lock);
    return m->settled >= round || !layout_unowned(m->world->layout);
}

/* If all shards have been filled with the whole dataset and some extents have no owner, node 0 asks for a turn. The
 * request is repeated, because it may be lost with a ring. */
static void look_after_room(struct peers *p, struct living *l, uint64_t now)
{
    struct stage_progress stage;
    if (l->world->me != 0)
        return;
    store_stage_progress(p->self.store, &stage);
    if (stage.round == p->room_round && now - p->room_asked < ASK_AGAIN_MS * MILLISECOND)
        return;
    if (stage.state != STAGE_DONE || stage_is_chosen(stage.round) || has_tried(&p->membership, stage.round) ||
        !others_are_done(l, stage.round))
        return;
    p->room_round = stage.round;
    p->room_asked = now;
    CLEANUP_WORLD struct world *w = membership_world(&p->membership);
    link_send(&l->link, &(struct ring_message){.kind = RING_COMMAND,
                                               .value = WORLD_TURN,
                                               .token = w->last.k + 1,
                                               .turn = {.cause = TURN_ROOM, .epoch = stage.round}});
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Times out what is due within two ticks, because a tick may be late. */
static void *keep_time(void *argument)
{
    struct peers *p = argument;
    uint64_t timeout = p->self.config.peer_timeout, wait = 0;
    uint64_t tick =
        at_least(SHORTEST_TICK_MS * MILLISECOND, at_most(timeout / TICKS_A_TIMEOUT, LONGEST_TICK_MS * MILLISECOND));
    uint64_t news = at_most(timeout / 4, NEWS_MS * MILLISECOND);
    for (struct living *l; (l = membership_await(&p->membership, wait));) {
        uint64_t now = clock_now();
        fetch_tick(l->fetches, now + 2 * tick);
        serve_tick(l->serves, now);
        if (now - l->told >= news || has_turned(p, l)) {
            tell_news(p, l);
            look_after_room(p, l, now);
            l->told = now;
        }
        wait = link_flush(&l->link) ? tick : MILLISECOND;
        living_put(l);
    }
    return NULL;
}

/* --- views --- */

static void view_peer(struct peers *p, struct living *l, const struct world *w, uint32_t node, struct peer_view *view)
{
    view->node = *layout_node(w->layout, node);
    view->state = l ? fetch_peer_state(l->fetches, node) : node == w->me ? PEER_GOOD : PEER_LOST;
    view->times = l && node != w->me ? fetch_peer_times(l->fetches, node) : (struct peer_times){0};
    if (node == w->me && p->self.store)
        peers_news(p, w, &view->news);
    else if (l && !news_read(ring_news(&l->link.ring, node), &view->news))
        memset(&view->news, 0, sizeof view->news);
}

static void add_last_heard(struct membership *m, const struct world *w, struct peer_view *peer)
{
    LOCK_SCOPE(&m->lock);
    for (uint32_t node = 0; m->heard && m->world == w && node < w->nodes; node++)
        if (node != w->me)
            peer[node].news = m->heard[node];
}

static int view_world(struct peers *p, struct living *l, struct world *w, struct world_view *view)
{
    view->peer = calloc(w->nodes, sizeof *view->peer);
    if (!view->peer)
        return -ENOMEM;
    for (uint32_t node = 0; node < w->nodes; node++) {
        view_peer(p, l, w, node, &view->peer[node]);
        if (view->peer[node].state != PEER_GOOD && layout_group(w->layout, node) == w->group)
            view->lost_bytes += layout_owned(w->layout, node);
    }
    if (!l)
        add_last_heard(&p->membership, w, view->peer);
    view->known = true;
    view->nodes = w->nodes;
    view->me = w->me;
    view->groups = layout_groups(w->layout);
    view->layout = *layout_digest(w->layout);
    view->owners = w->layout;
    view->before = w->before;
    view->last = w->last;
    view->hold = world_get(w);
    return 0;
}

int peers_view(struct peers *p, struct world_view *view)
{
    struct membership *m = &p->membership;
    pthread_mutex_lock(&m->lock);
    CLEANUP_LIVING struct living *l = living_get(m->living);
    CLEANUP_WORLD struct world *w = world_get(m->world);
    *view = (struct world_view){
        .state = l   ? WORLD_JOINED
                 : w ? WORLD_DEGRADED
                     : WORLD_ALONE,
        .nodes = 1,
        .groups = 1,
        .courier = m->courier,
        .settled = m->settled,
        .turning = m->turning,
        .lost = m->lost,
        .failed = m->failed,
        .unsaved = atomic_load(&p->self.unsaved),
        .timeouts = atomic_load(&p->self.timeouts),
        .bad = atomic_load(&p->self.bad),
    };
    if (clock_now() - m->failed_at > FAILED_NEWS_S * SECOND)
        view->failed.status = 0;
    pthread_mutex_unlock(&m->lock);
    return w ? view_world(p, l, w, view) : 0;
}

/* True: there is nothing to wait for. */
static bool has_courier(struct peers *p)
{
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    return l != NULL;
}

bool peers_await_courier(struct peers *p, bool (*gave_up)(void *user), void *user)
{
    bool here;
    while (!(here = has_courier(p)) && courier_may_come(&p->self) && !(gave_up && gave_up(user)))
        clock_sleep(COURIER_LOOK_MS * MILLISECOND);
    return here;
}

void peers_view_release(struct world_view *view)
{
    free(view->peer);
    world_put(view->hold);
    view->peer = NULL;
    view->hold = NULL;
}

int peers_command(struct peers *p, enum world_command command, uint64_t token)
{
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    if (!l)
        return -ENOTCONN;
    struct ring_message m = {.kind = RING_COMMAND, .node = l->world->me, .value = command, .token = token};
    link_send(&l->link, &m);
    return 0;
}

int peers_blob(struct peers *p, const struct blob_question *question, void *to, uint64_t *length)
{
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    return l ? fetch_blob(l->fetches, question, to, length) : -ENOTCONN;
}

int peers_turn(struct peers *p, const struct turn *turn, const struct turn_patience *patience,
               struct turn_record *record, struct str *trouble)
{
    return turn_wait(&p->self, &p->membership, turn, patience, record, trouble);
}

/* A layout, in the form that peers_blob fetches. */
/* --- beginning and end --- */

int peers_create(const struct peers_config *config, struct peers **peers)
{
    struct peers *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->self.config = *config;
    p->self.began = clock_now();
    membership_init(&p->membership);
    p->membership.mark = config->mark;
    int error = shelf_create(config->state, &p->self.shelf);
    if (!error)
        error = listener_create(&p->self, &p->membership, &p->listener);
    if (!error)
        error = mover_create(&p->self, &p->membership, &p->mover);
    if (error)
        peers_destroy(p);
    else
        *peers = p;
    return error;
}

/* A restarted server resumes the world of its mount. A new mount forgets the world of an earlier mount. */
static void recall_world(struct peers *p)
{
    const struct peers_config *c = &p->self.config;
    struct world *w;
    if (!c->restarted) {
        world_forget(c->state);
        return;
    }
    int error = world_load(c->state, p->self.shelf, c->catalog, &w); /* -ENOENT: there was none */
    if (error && error != -ENOENT)
        log_warning("the layout of the previous world cannot be used: %s", strerror(-error));
    membership_recall(&p->membership, error ? NULL : w);
    if (p->membership.lost)
        log_warning("this server does not know the layout of its world: plans and exchanges wait for the courier");
    if (error)
        return;
    log_info(
        "this is node %u of a world of %u; until its courier is back, the share of other nodes is read from the source",
        w->me, w->nodes);
    world_put(w);
}

int peers_fill(struct peers *p, const struct catalog *catalog, struct store *store)
{
    int error = extents_create(catalog, &p->self.extents);
    if (error)
        return error;
    p->self.config.catalog = catalog;
    recall_world(p);
    p->self.store = store;
    store_set_peers(store, &(struct store_peers){.user = p,
                                                 .keeps = peers_keep,
                                                 .fetch = peers_fetch,
                                                 .cancel = peers_cancel,
                                                 .before = peers_before,
                                                 .pulled = peers_pulled});
    return 0;
}

int peers_start(struct peers *p)
{
    int error = thread_create(&p->timer, "peers-time", keep_time, p);
    p->keeps_time = !error;
    if (!error)
        error = mover_start(p->mover);
    if (!error)
        error = listener_start(p->listener);
    if (error)
        peers_stop(p);
    return error;
}

void peers_stop(struct peers *p)
{
    if (!p)
        return;
    listener_stop(p->listener);
    membership_end(&p->membership);
    if (p->keeps_time)
        pthread_join(p->timer, NULL);
    p->keeps_time = false;
    mover_stop(p->mover);
}

void peers_destroy(struct peers *p)
{
    if (!p)
        return;
    KEEP_ERRNO;
    if (p->listener)
        peers_stop(p);
    listener_destroy(p->listener);
    mover_destroy(p->mover);
    membership_fini(&p->membership);
    shelf_destroy(p->self.shelf);
    extents_destroy(p->self.extents);
    free(p);
}
