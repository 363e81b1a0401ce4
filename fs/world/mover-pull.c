/* The mover's first part: pulls missing extents. It asks the store for at most MOST_OUT bytes ahead; loader threads
 * report each result with mover_pulled. */
#include "fs/world/mover-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>

enum {
    MOST_OUT = 64 << 20, /* maximum outstanding bytes */
    MOST_LOADS = 256,
    BURST_MS = 100, /* how much of a second's bytes may come at once */
    LOOK_MS = 100,
    /* after N × peer_timeout without a result, the remaining pulls are left to the loads they wait for */
    TIMEOUTS = 2,
};

/* With the lock. The next pass tries this extent again. */
static void note_failed(struct mover *m, uint64_t extent)
{
    m->first_failed = m->first_failed < extent ? m->first_failed : extent;
}

void mover_pulled(struct mover *m, uint32_t number, const struct span *span, int error)
{
    uint64_t extent = extents_at(m->self->extents, span->file, span->offset);
    LOCK_SCOPE(&m->lock);
    if (number == m->number) {
        struct move_news *n = &m->news;
        m->heard = clock_now();
        m->loads--;
        m->out -= span->length;
        if (!error) {
            n->come_bytes += span->length;
            n->come_samples += span->offset == 0;
        } else if (error == -ENOSPC && m->final) {
            n->refused_bytes += span->length;
            n->refused_samples += span->offset == 0;
        } else if (error == -ENOSPC) {
            m->first_cramped = m->cramped && m->first_cramped < extent ? m->first_cramped : extent;
            m->cramped = true;
        } else if (error == -EBUSY || error == -EAGAIN || error == -ETIMEDOUT || error == -EHOSTUNREACH) {
            note_failed(m, extent);
        }
        pthread_cond_signal(&m->back);
    }
}

/* With the lock, which is released in between. A pull that met a reader's load waits for the source as long as the
 * reader does. The move does not: a new number makes late results count no more. The load itself stores its bytes as
 * usual. */
static void leave_pulls(struct mover *m)
{
    uint32_t number = m->number++;
    log_warning("%d reads of the source hang: the move ends without them", m->loads);
    m->out = 0;
    m->loads = 0;
    pthread_mutex_unlock(&m->lock);
    store_forget_pull(m->self->store, number);
    pthread_mutex_lock(&m->lock);
}

/* Wait until at most `bytes` and `loads` are outstanding, the move is over, or results stop arriving. */
static void wait_for_pulls(struct course *c, uint64_t bytes, int loads)
{
    struct mover *m = c->mover;
    uint64_t patience = TIMEOUTS * m->self->config.peer_timeout;
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&m->stop) && m->loads && (m->out > bytes || m->loads > loads)) {
        if (cond_wait_until(&m->back, &m->lock, clock_now() + LOOK_MS * MILLISECOND))
            continue;
        pthread_mutex_unlock(&m->lock);
        bool over = is_over(c);
        pthread_mutex_lock(&m->lock);
        if (over)
            break;
        if (m->loads && clock_now() - m->heard > patience)
            leave_pulls(m);
    }
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

/* A piece is small compared to MOST_OUT. It is counted before the request, since its result may come first. */
static int pull_piece(struct course *c, uint32_t file, uint64_t from, uint64_t to)
{
    struct mover *m = c->mover;
    uint64_t held = 0;
    int most = (int)((to - from + VALUE_BYTES - 1) / VALUE_BYTES);
    wait_for_pulls(c, MOST_OUT - (to - from), MOST_LOADS);
    pthread_mutex_lock(&m->lock);
    m->heard = clock_now();
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
    LOCK_SCOPE(&c->mover->lock);
    note_failed(c->mover, extent);
    return 0;
}

static bool is_cramped(struct mover *m)
{
    LOCK_SCOPE(&m->lock);
    return m->cramped;
}

int pull_pass(struct course *c, uint64_t from)
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
        if ((e % MOVER_STEP == 0 || is_to_come(c, e)) && is_over(c))
            error = -ECANCELED;
    }
    if (error)
        store_forget_pull(m->self->store, m->number);
    else
        wait_for_pulls(c, 0, 0);
    return error;
}
