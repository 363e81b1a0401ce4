#include "fs/world/membership.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- the living world --- */

static int obey(const struct self *self, const struct ring_message *m)
{
    if (m->value < WORLD_STAGE || m->value > WORLD_UMOUNT)
        return -EBADMSG;
    self->config.command(self->config.user, (enum world_command)m->value, m->token);
    return 0;
}

static int take_message(struct link *link, const struct ring_message *m)
{
    struct living *l = (struct living *)link;
    switch (m->kind) {
    case RING_FETCHED:
        return fetch_answered(l->fetches, m);
    case RING_SERVE:
        return serve_asked(l->serves, m);
    case RING_SENT:
        return serve_sent(l->serves, m);
    case RING_GONE:
        return fetch_lost(l->fetches, m->node);
    case RING_COMMAND:
        return obey(l->self, m);
    default:
        return -EBADMSG;
    }
}

static void living_gone(struct link *link)
{
    struct living *l = (struct living *)link;
    fetches_destroy(l->fetches);
    serves_destroy(l->serves);
    link_fini(&l->link);
    world_put(l->world);
    free(l);
}
_Static_assert(offsetof(struct living, link) == 0, "a link is a living's");

int living_create(struct self *self, struct world *world, struct ring *ring, int alarm, struct living **living)
{
    struct living *l = calloc(1, sizeof *l);
    if (!l) {
        ring_close(ring);
        return -ENOMEM;
    }
    l->self = self;
    l->world = world_get(world);
    l->link.take = take_message;
    l->link.gone = living_gone;
    l->link.alarm = alarm;
    int error = link_init(&l->link, ring);
    if (!error)
        error = fetches_create(&l->link, self, world, &l->fetches);
    if (!error)
        error = serves_create(&l->link, self, world, &l->serves);
    if (error)
        living_put(l);
    else
        *living = l;
    return error;
}

struct living *living_get(struct living *l)
{
    if (l)
        link_get(&l->link);
    return l;
}

void living_put(struct living *l)
{
    if (l)
        link_put(&l->link);
}

/* --- the membership --- */

void membership_init(struct membership *m)
{
    *m = (struct membership){.over = false};
    LIST_INIT(&m->waiters);
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->changed);
}

void membership_fini(struct membership *m)
{
    world_put(m->world);
    free(m->heard);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
}

struct world *membership_world(struct membership *m)
{
    LOCK_SCOPE(&m->lock);
    return world_get(m->world);
}

struct living *membership_living(struct membership *m)
{
    LOCK_SCOPE(&m->lock);
    return living_get(m->living);
}

struct living *membership_await(struct membership *m, uint64_t nanoseconds)
{
    LOCK_SCOPE(&m->lock);
    if (m->living && !m->over)
        cond_wait_until(&m->changed, &m->lock, clock_now() + nanoseconds);
    while (!m->living && !m->over)
        pthread_cond_wait(&m->changed, &m->lock);
    return m->over ? NULL : living_get(m->living);
}

bool membership_next(struct membership *m, uint64_t *changes, struct world **world, struct living **living)
{
    LOCK_SCOPE(&m->lock);
    while (!m->over && (!m->living || m->changes == *changes))
        pthread_cond_wait(&m->changed, &m->lock);
    bool over = m->over;
    *changes = m->changes;
    *world = over ? NULL : world_get(m->world);
    *living = over ? NULL : living_get(m->living);
    return !over;
}

bool membership_stays(struct membership *m, uint64_t changes, uint64_t nanoseconds)
{
    uint64_t deadline = clock_now() + nanoseconds;
    LOCK_SCOPE(&m->lock);
    while (!m->over && m->changes == changes && nanoseconds && cond_wait_until(&m->changed, &m->lock, deadline))
        ;
    return !m->over && m->changes == changes;
}

/* The caller holds the lock. */
static void note_change(struct membership *m)
{
    m->changes++;
    pthread_cond_broadcast(&m->changed);
}

void membership_end(struct membership *m)
{
    LOCK_SCOPE(&m->lock);
    m->over = true;
    pthread_cond_broadcast(&m->changed);
}

/* The caller holds the lock. */
static void note_settled(struct membership *m, const struct turn *turn)
{
    if (turn->cause == TURN_ROOM && turn->epoch > m->settled)
        m->settled = turn->epoch;
}

/* The caller holds the lock. */
static void note_taken(struct membership *m, const struct turn_record *record)
{
    struct turn_waiter *waiter;
    if (!record->k)
        return;
    note_settled(m, &record->turn);
    m->failed.status = 0;
    LIST_FOREACH(waiter, &m->waiters, next)
    if (turn_same(&waiter->turn, &record->turn))
        waiter->record = *record;
}

static uint64_t first_bytes(const void *name)
{
    uint64_t bytes;
    memcpy(&bytes, name, sizeof bytes);
    return bytes ? bytes : 1;
}

/* The caller holds the lock. */
static void note_layout(struct membership *m, const struct world *w)
{
    if (m->mark) {
        atomic_store(&m->mark->world, first_bytes(w->uuid));
        atomic_store(&m->mark->layout, first_bytes(layout_digest(w->layout)));
    }
    m->lost = false;
}

static void replace_world(struct membership *m, struct world *w, bool turning, bool recalled)
{
    pthread_mutex_lock(&m->lock);
    struct world *before = m->world;
    struct node_news *heard = m->heard;
    m->world = world_get(w);
    m->heard = NULL;
    m->turning = turning;
    if (!recalled)
        note_layout(m, w);
    note_change(m);
    note_taken(m, &w->last);
    pthread_mutex_unlock(&m->lock);
    world_put(before);
    free(heard);
}

void membership_recall(struct membership *m, struct world *w)
{
    uint64_t mark = m->mark ? atomic_load(&m->mark->layout) : 0;
    pthread_mutex_lock(&m->lock);
    m->lost = mark != 0 && (!w || mark != first_bytes(layout_digest(w->layout)));
    pthread_mutex_unlock(&m->lock);
    if (!w)
        return;
    replace_world(m, w, false, true);
    log_set_node((int)w->me);
}

bool membership_is_other(struct membership *m, const uint8_t uuid[16])
{
    uint64_t mark = m->mark ? atomic_load(&m->mark->world) : 0;
    CLEANUP_WORLD struct world *w = membership_world(m);
    return mark ? mark != first_bytes(uuid) : w && memcmp(w->uuid, uuid, sizeof w->uuid) != 0;
}

void membership_join(struct membership *m, struct living *l, uint32_t courier)
{
    replace_world(m, l->world, false, false);
    log_set_node((int)l->world->me);
    LOCK_SCOPE(&m->lock);
    m->living = living_get(l);
    m->courier = courier;
    note_change(m);
}

static struct node_news *copy_news(const struct living *l)
{
    struct node_news *news = calloc(l->world->nodes, sizeof *news);
    for (uint32_t node = 0; news && node < l->world->nodes; node++)
        if (!news_read(ring_news(&l->link.ring, node), &news[node]))
            memset(&news[node], 0, sizeof news[node]);
    return news;
}

void membership_leave(struct membership *m)
{
    struct living *l = membership_living(m);
    struct node_news *heard = copy_news(l);
    pthread_mutex_lock(&m->lock);
    m->living = NULL;
    m->courier = 0;
    m->heard = heard;
    note_change(m);
    pthread_mutex_unlock(&m->lock);
    fetch_end(l->fetches);
    serve_end(l->serves);
    living_put(l);
    living_put(l);
}

void membership_turn(struct membership *m, struct world *w)
{
    CLEANUP_LIVING struct living *l = membership_living(m);
    fetch_turn(l->fetches, w); /* before any thread pulls by the new layout */
    replace_world(m, w, true, false);
    log_info("turn %" PRIu64 ": %s", w->last.k, turn_names[w->last.turn.cause]);
}

void membership_settle(struct membership *m, const struct turn *turn)
{
    LOCK_SCOPE(&m->lock);
    note_settled(m, turn);
    m->turning = false;
}

void membership_fail(struct membership *m, const struct turn_outcome *outcome)
{
    const struct turn *turn = &outcome->record.turn;
    struct turn_waiter *waiter;
    pthread_mutex_lock(&m->lock);
    bool again = m->failed.status == outcome->status && m->failed.node == outcome->node &&
                 turn_same(&m->failed.record.turn, turn);
    m->failed = *outcome;
    m->failed_at = clock_now();
    LIST_FOREACH(waiter, &m->waiters, next)
    if (turn_same(&waiter->turn, turn)) {
        waiter->status = outcome->status;
        waiter->node = outcome->node;
    }
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (again)
        return;
    if (outcome->node == UINT32_MAX)
        log_warning("the nodes did not agree on a new layout (%s) in time", turn_names[turn->cause]);
    else
        log_warning("a new layout (%s) was rejected because of node %" PRIu32 ": %s", turn_names[turn->cause],
                    outcome->node, strerror(-outcome->status));
}
