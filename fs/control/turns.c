/* Asking for turns, again and again.
 *
 * Threads: who awaits a turn is a worker, and looks at the world itself. What is wished for has one thread, which waits
 * for a wish, then repeats it until it is taken. */
#include "fs/control/turns.h"

#include "fs/control/control-private.h"
#include "fs/control/world-view.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert((int)TURN_WHOLE == (int)MILLION, "fractions of requests are in millionths");

enum { ASK_AGAIN_MS = 200, LOOK_MS = 50, COURIER_BACK_S = 5 };

struct turns {
    struct control *control;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t changed; /* there is another wish, or the end */
    bool wishing, stopping;
    struct turn wish;
};

/* Are all nodes there? Couriers come back to a server that has taken over, some moments later. */
static bool world_is_whole(struct control *control)
{
    const struct control_config *config = &control->config;
    struct world_view view;

    world_view_get(control, &view);
    bool whole = view.state == WORLD_JOINED;
    bool comes = view.state == WORLD_DEGRADED && !view.courier && config->generation > 1 &&
                 clock_now() - control->began < COURIER_BACK_S * SECOND;
    world_view_release(&view);
    return whole || comes;
}

/* 0 and `record`: it is taken; -EAGAIN: not yet; else it will not be. */
static int ask_once(struct control *control, const struct turn *turn, struct turn_record *record)
{
    struct peers *peers = control->config.peers;

    if (!peers)
        return -ENOTCONN;
    if (peers_turned(peers, turn, record))
        return 0;
    int error = peers_turn(peers, turn);
    if (error && error != -EBUSY && error != -ENOTCONN)
        return error;
    return world_is_whole(control) ? -EAGAIN : -ENOTCONN;
}

int turns_await(struct control *control, const struct turn *turn, const struct asker *asker, struct turn_record *record)
{
    int error;

    while ((error = ask_once(control, turn, record)) == -EAGAIN)
        for (int waited = 0; waited < ASK_AGAIN_MS && !peers_turned(control->config.peers, turn, record);
             waited += LOOK_MS) {
            if (asker_gave_up(asker))
                return -EINTR;
            clock_sleep(LOOK_MS * MILLISECOND);
        }
    return error;
}

int turns_layout(const struct world_view *view, const struct turn *exchange, struct digest *layout)
{
    const struct turn_record *own = turn_find(&view->history, exchange), *last = NULL;
    struct turn next = *exchange, before = *exchange;

    next.epoch++;
    before.epoch--;
    const struct turn_record *following = turn_find(&view->history, &next);
    for (uint64_t i = 0; i < view->history.count && !last; i++)
        if (view->history.record[i].turn.cause == TURN_EXCHANGE)
            last = &view->history.record[i];
    if (!own && !following && last && turn_same(&last->turn, &before))
        return -EAGAIN;
    *layout = own ? own->after : following ? following->before : view->known ? view->layout : (struct digest){0};
    return 0;
}

/* ---- wishes ---- */

/* With the lock, which is let go of meanwhile. */
static void pursue_wish(struct turns *t)
{
    const struct turn wish = t->wish;
    struct turn_record record;

    pthread_mutex_unlock(&t->lock);
    int error = ask_once(t->control, &wish, &record);
    pthread_mutex_lock(&t->lock);
    if (t->stopping || !turn_same(&wish, &t->wish))
        return;
    if (error == -EAGAIN) {
        cond_wait_until(&t->changed, &t->lock, clock_now() + ASK_AGAIN_MS * MILLISECOND);
        return;
    }
    t->wishing = false;
    if (error)
        log_limited(LOG_LEVEL_WARNING, 1, "exchange of epoch %ju, which a plan asked for: %s", (uintmax_t)wish.epoch,
                    strerror(-error));
}

static void *turns_main(void *user)
{
    struct turns *t = user;

    pthread_mutex_lock(&t->lock);
    while (!t->stopping)
        if (t->wishing)
            pursue_wish(t);
        else
            pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void turns_wish(struct turns *t, const struct turn *turn)
{
    pthread_mutex_lock(&t->lock);
    if (!t->wishing || !turn_same(&t->wish, turn)) {
        t->wish = *turn;
        t->wishing = true;
        pthread_cond_signal(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
}

bool turns_wishes(struct turns *t, const struct turn *turn)
{
    pthread_mutex_lock(&t->lock);
    bool wishes = t->wishing && turn_same(&t->wish, turn);
    pthread_mutex_unlock(&t->lock);
    return wishes;
}

int turns_create(struct control *control, struct turns **turns)
{
    struct turns *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    t->control = control;
    pthread_mutex_init(&t->lock, NULL);
    cond_init(&t->changed);
    int error = thread_create(&t->thread, "turns", turns_main, t);
    t->running = !error;
    if (error)
        turns_destroy(t);
    else
        *turns = t;
    return error;
}

void turns_destroy(struct turns *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->running)
        pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
