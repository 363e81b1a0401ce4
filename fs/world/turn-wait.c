/* A request for a turn can get lost with a server or courier, and is refused while the previous turn or its move is in
 * progress. So it is repeated, with growing pauses. If other turns have followed, a turn that was taken must not be
 * requested again: the membership records its result for the waiting threads. */
#include "fs/world/turn-wait.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { LOOK_MS = 20, FIRST_PAUSE_MS = 200, LONGEST_PAUSE_MS = 5000, COURIER_BACK_S = 5 };

/* The state of the world at one moment. */
struct turn_look {
    struct living *living;
    struct world *world;
    struct turn_waiter waiter;
    uint32_t behind; /* a node that has not taken the last turn, or whose move is not done */
};

bool courier_may_come(const struct self *self)
{
    return self->config.restarted && !atomic_load(&self->joined) &&
           clock_now() - self->began < clock_bound("DEALFS_COURIER_BACK", COURIER_BACK_S);
}

static bool node_is_at(const struct self *self, struct living *l, uint32_t node, uint64_t turn, uint64_t moved)
{
    struct node_news news;
    if (node == l->world->me)
        return atomic_load(&self->moved) >= moved;
    return news_read(ring_news(&l->link.ring, node), &news) && news.turn >= turn && news.moved >= moved;
}

/* 0: all nodes have taken turn `turn` and completed the move of turn `moved`; -EBUSY; -ENOTCONN. */
static int look_at_nodes(const struct self *self, struct turn_look *look, uint64_t turn, uint64_t moved)
{
    struct living *l = look->living;
    int error = 0;
    if (!l)
        return look->world && courier_may_come(self) ? -EBUSY : -ENOTCONN;
    for (uint32_t node = 0; node < l->world->nodes; node++) {
        if (node != l->world->me && fetch_peer_state(l->fetches, node) == PEER_LOST)
            return -ENOTCONN;
        if (!error && !node_is_at(self, l, node, turn, moved)) {
            look->behind = node;
            error = -EBUSY;
        }
    }
    return error;
}

static void look_begin(struct membership *m, const struct turn_waiter *waiter, struct turn_look *look)
{
    LOCK_SCOPE(&m->lock);
    *look = (struct turn_look){
        .living = living_get(m->living), .world = world_get(m->world), .waiter = *waiter, .behind = UINT32_MAX};
}

static void look_end(struct turn_look *look)
{
    living_put(look->living);
    world_put(look->world);
}

static void ask_courier(const struct turn_look *look, const struct turn *turn)
{
    link_send(&look->living->link,
              &(struct ring_message){
                  .kind = RING_COMMAND, .value = WORLD_TURN, .token = look->world->last.k + 1, .turn = *turn});
}

/* When to repeat the request. */
struct turn_pauses {
    uint64_t next, pause;
};

static void pauses_grow(struct turn_pauses *p, uint64_t now)
{
    const uint64_t longest = LONGEST_PAUSE_MS * MILLISECOND;
    p->next = now + p->pause;
    p->pause = 2 * p->pause < longest ? 2 * p->pause : longest;
}

/* 0: all nodes have taken it; -EAGAIN: not yet; else the final result. */
static int ask_or_look(struct self *self, struct turn_look *look, struct turn_pauses *pauses)
{
    const struct turn_record *record = &look->waiter.record;
    uint64_t now = clock_now(), k = look->world ? look->world->last.k : 0;
    if (record->k) {
        int error = look_at_nodes(self, look, record->k, 0);
        return error == -EBUSY ? -EAGAIN : error;
    }
    int error = look_at_nodes(self, look, k, k);
    if (error)
        return error == -EBUSY ? -EAGAIN : error;
    if (now >= pauses->next) {
        ask_courier(look, &look->waiter.turn);
        pauses_grow(pauses, now);
    }
    return -EAGAIN;
}

static void describe(const struct turn_look *look, int error, struct str *trouble)
{
    const struct turn_waiter *w = &look->waiter;
    if (error == -ENOTCONN)
        str_adds(trouble, "not all nodes can be reached: join them again, then repeat the request");
    else if (error == -ETIMEDOUT && w->record.k && look->behind != UINT32_MAX)
        str_addf(trouble, "node %" PRIu32 " has not taken turn %" PRIu64 " yet", look->behind, w->record.k);
    else if (error == -ETIMEDOUT && look->behind != UINT32_MAX)
        str_addf(trouble, "node %" PRIu32 " still receives the samples of the previous turn", look->behind);
    else if (error == -ETIMEDOUT)
        str_adds(trouble, "the nodes have not agreed on it in time; it may still be taken");
    else if (w->status)
        str_addf(trouble, "node %" PRIu32 ": %s", w->node, strerror(-error));
    else
        str_adds(trouble, strerror(-error));
}

/* Returns -EAGAIN until the deadline has passed or the asker has given up. */
static int look_at_clock(const struct turn_patience *p, const struct turn_waiter *w)
{
    if (p->gave_up && p->gave_up(p->user))
        return -EINTR;
    if (clock_now() < p->deadline)
        return -EAGAIN;
    return w->status && !w->record.k ? w->status : -ETIMEDOUT;
}

static void pause_waiter(struct membership *m, const struct turn_patience *p)
{
    uint64_t until = clock_now() + LOOK_MS * MILLISECOND;
    LOCK_SCOPE(&m->lock);
    cond_wait_until(&m->changed, &m->lock, until < p->deadline ? until : p->deadline);
}

/* Also in health and log: the asker may not see the reply. */
static void note_late(struct membership *m, const struct turn_look *look)
{
    struct turn_outcome late = {.record = {.turn = look->waiter.turn}, .status = -ETIMEDOUT, .node = look->behind};
    membership_fail(m, &late);
}

static int wait_for_waiter(struct self *self, struct membership *m, const struct turn_patience *p,
                           struct turn_waiter *waiter, struct str *trouble)
{
    struct turn_pauses pauses = {0, FIRST_PAUSE_MS * MILLISECOND};
    int error;
    for (;;) {
        struct turn_look look;
        look_begin(m, waiter, &look);
        error = look.world && look.world->nodes > 1 ? ask_or_look(self, &look, &pauses) : 0;
        if (error == -EAGAIN)
            error = look_at_clock(p, &look.waiter);
        if (error && error != -EAGAIN)
            describe(&look, error, trouble);
        if (error == -ETIMEDOUT)
            note_late(m, &look);
        look_end(&look);
        if (error != -EAGAIN)
            return error;
        pause_waiter(m, p);
    }
}

int turn_wait(struct self *self, struct membership *m, const struct turn *turn, const struct turn_patience *patience,
              struct turn_record *record, struct str *trouble)
{
    struct turn_waiter waiter = {.turn = *turn};
    if (!turn_is_sound(turn))
        return str_fail(trouble, -EINVAL, "%s", strerror(EINVAL));
    pthread_mutex_lock(&m->lock);
    if (m->world && m->world->last.k && turn_same(&m->world->last.turn, turn))
        waiter.record = m->world->last;
    LIST_INSERT_HEAD(&m->waiters, &waiter, next);
    pthread_mutex_unlock(&m->lock);
    int error = wait_for_waiter(self, m, patience, &waiter, trouble);
    pthread_mutex_lock(&m->lock);
    LIST_REMOVE(&waiter, next);
    pthread_mutex_unlock(&m->lock);
    *record = waiter.record;
    return error;
}
