/* Peers: assembly, time, and what others see of it.
 *
 * Threads: the store's readers ask here who keeps what; talk.c joins and leaves worlds; the time's thread ends fetches that
 * are silent, sends what the ring had no room for, and writes this node's news. It looks often enough that a reader waits
 * no longer than peer_timeout, and waits itself for `changed` while there is no ring. */
#include "fs/world/inside.h"

#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)
enum { SHORTEST_TICK_MS = 2, LONGEST_TICK_MS = 500, NEWS_MS = 1000, TICKS_A_TIMEOUT = 16, ASK_AGAIN_MS = 5000 };

int start_thread(pthread_t *thread, void *(*run)(void *), void *argument, const char *name)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = -pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_setname_np(*thread, name);
    return error;
}

/* Worlds. */

struct world *peers_world(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    struct world *w = world_get(p->world);
    pthread_mutex_unlock(&p->lock);
    return w;
}

struct link *peers_link(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    struct link *l = link_get(p->link);
    pthread_mutex_unlock(&p->lock);
    return l;
}

static void replace_world(struct peers *p, struct world *w, bool turning)
{
    pthread_mutex_lock(&p->lock);
    struct world *before = p->world;
    struct node_news *heard = p->heard;
    p->world = world_get(w);
    p->heard = NULL;
    p->turning = turning;
    pthread_mutex_unlock(&p->lock);
    world_put(before);
    free(heard);
}

void peers_remember(struct peers *p, struct world *w)
{
    replace_world(p, w, false);
    log_set_node((int)w->me);
}

void peers_turn(struct peers *p, struct world *w)
{
    replace_world(p, w, true);
    log_info("what had no owner has been dealt");
}

void peers_settle(struct peers *p, uint64_t round, bool turned)
{
    int error = turned ? store_stage_again(p->store, round + 1) : 0;
    if (error)
        log_error("stage what has become this node's: %s", strerror(-error));
    pthread_mutex_lock(&p->lock);
    p->settled = round > p->settled ? round : p->settled;
    p->turning = false;
    pthread_mutex_unlock(&p->lock);
}

void peers_join(struct peers *p, struct link *l, uint32_t courier)
{
    peers_remember(p, l->world);
    pthread_mutex_lock(&p->lock);
    p->link = link_get(l);
    p->courier = courier;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static struct node_news *copy_news(struct link *l)
{
    struct node_news *news = calloc(l->world->nodes, sizeof *news);
    for (uint32_t node = 0; news && node < l->world->nodes; node++)
        if (!news_read(ring_news(&l->ring, node), &news[node]))
            memset(&news[node], 0, sizeof news[node]);
    return news;
}

void peers_leave(struct peers *p)
{
    struct link *l = peers_link(p);
    if (!l)
        return;
    struct node_news *heard = copy_news(l);
    pthread_mutex_lock(&p->lock);
    p->link = NULL;
    p->courier = 0;
    p->heard = heard;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    fetch_end(l);
    serve_end(l);
    link_put(l);
    link_put(l);
}

/* For the store. */

static bool keeps(void *user, uint32_t file, uint64_t offset)
{
    struct peers *p = user;
    struct world *w = peers_world(p);
    bool keep = !w || world_keeps(w, extents_at(p->extents, file, offset));
    world_put(w);
    return keep;
}

static int fetch(void *user, struct store_read *read)
{
    struct link *l = peers_link(user);
    int error = l ? fetch_ask(l, read) : -ENOTCONN;
    link_put(l);
    return error;
}

/* Time. */

static void gather_news(struct peers *p, struct node_news *news)
{
    struct store_stats stats;
    struct stage_progress stage;
    store_stats(p->store, &stats);
    store_stage_progress(p->store, &stage);
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
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        news->held += stats.tier[tier].held;
        news->capacity += stats.tier[tier].capacity;
    }
    for (enum place place = 0; place < PLACES; place++) {
        news->reads[place] = stats.reads[place];
        news->bytes[place] = stats.bytes[place];
    }
}

/* Also when there is nothing new: its version tells the courier that this server lives. */
static void tell_news(struct peers *p, struct link *l)
{
    struct node_news now;
    gather_news(p, &now);
    news_write(ring_news(&l->ring, l->world->me), &now);
}

static bool others_are_done(struct link *l, uint64_t round)
{
    for (uint32_t node = 0; node < l->world->nodes; node++) {
        struct node_news news;
        if (node == l->world->me || fetch_state(l, node) == PEER_LOST)
            continue;
        if (!news_read(ring_news(&l->ring, node), &news) || news.staging != STAGE_DONE || news.stage_round < round)
            return false;
    }
    return true;
}

static bool is_dealt(struct peers *p, uint64_t round)
{
    pthread_mutex_lock(&p->lock);
    bool dealt = p->settled >= round || !directory_unowned(p->world->directory);
    pthread_mutex_unlock(&p->lock);
    return dealt;
}

/* When the shards of all have been filled, and not all has an owner, node 0 has that dealt. The courier may have lost
 * what it was told, with a ring; so it is told again. */
static void look_after_deal(struct peers *p, struct link *l, uint64_t now)
{
    struct stage_progress stage;
    if (l->world->me != 0)
        return;
    store_stage_progress(p->store, &stage);
    if (stage.round == p->deal_round && now - p->deal_asked < ASK_AGAIN_MS * MS)
        return;
    if (stage.state != STAGE_DONE || is_dealt(p, stage.round) || !others_are_done(l, stage.round))
        return;
    p->deal_round = stage.round;
    p->deal_asked = now;
    link_push(l, &(struct ring_message){.kind = RING_COMMAND, .value = WORLD_DEAL, .token = stage.round});
}

static uint64_t tick_of(const struct peers *p)
{
    uint64_t tick = p->config.peer_timeout / TICKS_A_TIMEOUT;
    return tick < SHORTEST_TICK_MS * MS ? SHORTEST_TICK_MS * MS : tick > LONGEST_TICK_MS * MS ? LONGEST_TICK_MS * MS : tick;
}

static void wait_for(struct peers *p, uint64_t nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(nanoseconds / (1000 * MS));
    until.tv_nsec += (long)(nanoseconds % (1000 * MS));
    if (until.tv_nsec >= (long)(1000 * MS)) {
        until.tv_nsec -= (long)(1000 * MS);
        until.tv_sec++;
    }
    pthread_cond_timedwait(&p->changed, &p->lock, &until);
}

/* Two ticks ahead: one may be late. */
static void *keep_time(void *argument)
{
    struct peers *p = argument;
    uint64_t tick = tick_of(p), news = p->config.peer_timeout / 4, told = 0;
    news = news < NEWS_MS * MS ? news : NEWS_MS * MS;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct link *l = link_get(p->link);
        if (!l) {
            pthread_cond_wait(&p->changed, &p->lock);
            told = 0;
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        uint64_t now = clock_now();
        fetch_tick(l, now + 2 * tick);
        serve_tick(l, now);
        if (now - told >= news) {
            tell_news(p, l);
            look_after_deal(p, l, now);
            told = now;
        }
        bool all_sent = link_flush(l);
        link_put(l);
        pthread_mutex_lock(&p->lock);
        if (!p->stop)
            wait_for(p, all_sent ? tick : MS);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Views. */

void peers_capacity(struct peers *p, uint64_t *capacity, bool *opening)
{
    struct store_stats stats;
    store_stats(p->store, &stats);
    *capacity = 0;
    *opening = false;
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        const struct tier_status *t = &stats.tier[tier];
        *opening |= t->state == TIER_LOCKED;
        if (t->state == TIER_OPEN || t->state == TIER_LOCKED)
            *capacity += t->capacity;
        else if (t->state == TIER_CLOSED)
            *capacity += t->held;
    }
}

static void view_peer(struct peers *p, struct link *l, struct world *w, uint32_t node, struct peer_view *view)
{
    view->node = *directory_node(w->directory, node);
    view->state = !l && node != w->me ? PEER_LOST : l ? fetch_state(l, node) : PEER_GOOD;
    if (node == w->me && p->store)
        gather_news(p, &view->news);
    else if (l && !news_read(ring_news(&l->ring, node), &view->news))
        memset(&view->news, 0, sizeof view->news);
}

static int view_peers(struct peers *p, struct link *l, struct world *w, struct world_view *view)
{
    view->peer = calloc(w->nodes, sizeof *view->peer);
    if (!view->peer)
        return -ENOMEM;
    for (uint32_t node = 0; node < w->nodes; node++) {
        view_peer(p, l, w, node, &view->peer[node]);
        bool ours = directory_group(w->directory, node) == w->group;
        if (view->peer[node].state != PEER_GOOD && ours)
            view->lost_bytes += w->owned[node];
    }
    return 0;
}

static void add_last_heard(struct peers *p, struct world *w, struct world_view *view)
{
    pthread_mutex_lock(&p->lock);
    for (uint32_t node = 0; p->heard && p->world == w && node < w->nodes; node++)
        if (node != w->me)
            view->peer[node].news = p->heard[node];
    pthread_mutex_unlock(&p->lock);
}

int peers_view(struct peers *p, struct world_view *view)
{
    *view = (struct world_view){
        .nodes = 1,
        .groups = 1,
        .timeouts = atomic_load(&p->timeouts),
        .bad = atomic_load(&p->bad),
    };
    pthread_mutex_lock(&p->lock);
    struct link *l = link_get(p->link);
    struct world *w = world_get(p->world);
    view->courier = p->courier;
    view->settled = p->settled;
    view->turning = p->turning;
    pthread_mutex_unlock(&p->lock);
    view->state = l ? WORLD_JOINED : w ? WORLD_DEGRADED : WORLD_ALONE;
    int error = w ? view_peers(p, l, w, view) : 0;
    if (w && !error) {
        if (!l)
            add_last_heard(p, w, view);
        view->known = true;
        view->nodes = w->nodes;
        view->me = w->me;
        view->groups = w->groups;
        view->directory = *directory_digest(w->directory);
        view->owners = w->directory;
        view->hold = world_get(w);
    }
    link_put(l);
    world_put(w);
    return error;
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
    struct link *l = peers_link(p);
    if (!l)
        return -ENOTCONN;
    struct ring_message m = {.kind = RING_COMMAND, .node = l->world->me, .value = command, .token = token};
    link_push(l, &m);
    link_put(l);
    return 0;
}

/* Beginning and end. */

int peers_create(const struct peers_config *config, struct peers **peers)
{
    struct peers *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->config = *config;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pool_init(&p->pool);
    int error = talk_create(p, &p->talk);
    if (error) {
        peers_destroy(p);
        return error;
    }
    *peers = p;
    return 0;
}

/* What the servers before this one joined is this mount's world still; another mount's is over. */
static void recall(struct peers *p)
{
    struct world *w;
    if (!p->config.restarted) {
        world_forget(p->config.state);
        return;
    }
    int error = world_load(p->config.state, p->config.catalog, &w); /* -ENOENT: there was none */
    if (error && error != -ENOENT)
        log_warning("the directory of the world before cannot be used: %s", strerror(-error));
    if (error)
        return;
    peers_remember(p, w);
    log_info("this is node %u of a world of %u; until its courier is back the others' share is read from the source",
             w->me, w->nodes);
    world_put(w);
}

int peers_fill(struct peers *p, const struct catalog *catalog, struct store *store)
{
    int error = extents_create(catalog, &p->extents);
    if (error)
        return error;
    p->config.catalog = catalog;
    recall(p);
    p->store = store;
    store_set_peers(store, &(struct store_peers){.user = p, .keeps = keeps, .fetch = fetch});
    return 0;
}

int peers_start(struct peers *p)
{
    int error = start_thread(&p->timer, keep_time, p, "peers-time");
    if (error)
        return error;
    p->timing = true;
    error = talk_start(p->talk);
    if (error)
        peers_stop(p);
    return error;
}

void peers_stop(struct peers *p)
{
    if (!p)
        return;
    talk_stop(p->talk);
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->timing)
        pthread_join(p->timer, NULL);
    p->timing = false;
}

void peers_destroy(struct peers *p)
{
    if (!p)
        return;
    int saved = errno;
    if (p->talk)
        peers_stop(p);
    talk_destroy(p->talk);
    world_put(p->world);
    free(p->heard);
    extents_destroy(p->extents);
    pool_fini(&p->pool);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    errno = saved;
}
