/* A turn takes what the server and MPI have, and then rings those who were sent something. When nothing is left to do
 * we sleep on the server's bell, the doorbell, the socket, the signals, and the sockets of MPI where it has some.
 *
 * Where others are reached without these, MPI has nothing to sleep on. So after the last thing that happened we look
 * again for SPIN, giving the processor to whoever wants it, and in our sleep we wake by ourselves now and then: soon
 * while an answer is on its way, for large ones take MPI several turns, more rarely the longer nothing comes. */
#include "mpi/loop.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "mpi/signals.h"
#include "mpi/sockets.h"

#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

#define MICROSECOND UINT64_C(1000)
#define MILLISECOND UINT64_C(1000000)

enum {
    SPIN_US = 50,
    BUSY_US = 400, /* for so long we look while bytes are on their way, which somebody must push or pull */
    LOOK_MS = 1,   /* how often sockets and clock are looked at while there is no time to sleep */
    NAP_MOST_MS = 100,
    LEAVE_MS = 600, /* for the others to hear that we leave: a launcher kills after a second */
    MESSAGES = 64,  /* of the server in one turn */
};

enum source { FROM_RING, FROM_SERVER, FROM_DOORBELL, FROM_SIGNALS, FROM_MPI };

struct turn {
    struct loop *l;
    int epoll, signals;
    struct hold *hold;   /* whose bell epoll has; NULL: none */
    uint32_t connection; /* which of the link's sockets it has */
    uint64_t now, active_at, looked_at;
    bool rung;    /* by a peer, and nothing of MPI has ended since */
    bool due;     /* MPI may have something to do */
    bool leaving;
    uint64_t leave_by; /* 0: not yet */
};

static int watch(int epoll, int fd, enum source source)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = source};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* The link has other descriptors after a restart of the server. A closed socket has left epoll by itself. */
static int watch_link(struct turn *t)
{
    const struct link *l = t->l->link;
    int error = 0;
    if (t->hold != l->hold) {
        if (t->hold)
            epoll_ctl(t->epoll, EPOLL_CTL_DEL, t->hold->ring.bell_courier, NULL);
        hold_put(t->hold);
        t->hold = hold_get(l->hold);
        error = watch(t->epoll, t->hold->ring.bell_courier, FROM_RING);
    }
    if (!error && l->socket >= 0 && t->connection != l->connection) {
        t->connection = l->connection;
        error = watch(t->epoll, l->socket, FROM_SERVER);
    }
    return error;
}

static void leave(struct turn *t, const char *why)
{
    if (t->leaving)
        return;
    t->leaving = true;
    log_info("leaving the world: %s", why);
    t->l->link->ending = true;
    link_end(t->l->link, "its courier leaves");
    flight_link(t->l->flight);
    flight_quit(t->l->flight);
    t->leave_by = t->now + LEAVE_MS * MILLISECOND;
}

static bool take_from_server(struct turn *t)
{
    struct ring_message m;
    int n = 0;
    while (n < MESSAGES && link_take(t->l->link, &m)) {
        flight_take(t->l->flight, &m);
        n++;
    }
    return n > 0;
}

static void clear_bell(int bell)
{
    uint64_t rung;
    (void)!read(bell, &rung, sizeof rung);
}

static int take_events(struct turn *t, int wait_ms)
{
    struct epoll_event e[8];
    int n = epoll_wait(t->epoll, e, 8, wait_ms);
    t->now = clock_now();
    t->looked_at = t->now;
    for (int i = 0; i < n; i++)
        switch ((enum source)e[i].data.u32) {
        case FROM_SERVER:
            while (take_from_server(t)) /* its last word stands in the ring, before it says END or hangs up */
                ;
            link_readable(t->l->link);
            break;
        case FROM_DOORBELL:
            t->rung |= doorbell_answer(t->l->doorbell);
            break;
        case FROM_SIGNALS:
            if (signals_take(t->signals))
                leave(t, "a signal asks for it");
            break;
        case FROM_MPI:
            t->due = true;
            break;
        case FROM_RING:
            if (t->l->link->state != LINK_LIVE) /* else ring_awake resets it */
                clear_bell(t->hold->ring.bell_courier);
            break;
        }
    if (n > 0)
        t->active_at = t->now;
    else
        t->due = true;
    return n < 0 && errno != EINTR ? -errno : 0;
}

/* What the clock and the state of the link ask for; then the descriptors are watched anew. */
static int look_around(struct turn *t, int wait_ms)
{
    int error = take_events(t, wait_ms);
    link_tick(t->l->link, t->now);
    flight_link(t->l->flight);
    flight_tick(t->l->flight, t->now);
    return error ? error : watch_link(t);
}

static int nap(const struct turn *t)
{
    uint64_t nap = NAP_MOST_MS * MILLISECOND, idle = t->now - t->active_at;
    uint64_t next = link_next(t->l->link), due = flight_next(t->l->flight);
    if (flight_pending(t->l->flight) && idle / 4 < nap)
        nap = idle / 4;
    if (t->l->link->late_count > 0 || nap < MILLISECOND)
        nap = MILLISECOND;
    next = next < due ? next : due;
    if (next < t->now + nap)
        nap = next > t->now ? next - t->now : 0;
    return (int)((nap + MILLISECOND - 1) / MILLISECOND);
}

static int sleep_or_look(struct turn *t)
{
    struct ring *ring = t->l->link->state == LINK_LIVE ? &t->l->link->hold->ring : NULL;
    if (ring && !ring_may_sleep(&ring->shared->to_courier))
        return 0;
    struct hold *hold = ring ? hold_get(t->l->link->hold) : NULL;
    int error = look_around(t, nap(t));
    if (hold)
        ring_awake(&hold->ring.shared->to_courier, hold->ring.bell_courier);
    hold_put(hold);
    return error;
}

/* How long to look before sleeping. */
static uint64_t spin(const struct turn *t)
{
    bool wakes = doorbell_is_idle(t->l->doorbell);
    bool bytes = (post_sends(t->l->post) > 0 && !wakes) || (t->rung && flight_asks(t->l->flight));
    return (bytes ? BUSY_US : wakes ? 0 : SPIN_US) * MICROSECOND;
}

/* What we have said last is to leave before we do; somebody who is gone already does not take it. */
static bool is_over(struct turn *t)
{
    if (!flight_world_ended(t->l->flight))
        return false;
    if (!t->leave_by)
        t->leave_by = t->now + LEAVE_MS * MILLISECOND;
    return post_sends(t->l->post) == 0 || t->now + MILLISECOND >= t->leave_by;
}

/* How much of MPI has ended. */
static int take_from_mpi(struct turn *t)
{
    int got = t->due ? post_progress(t->l->post) : 0;
    t->due = !doorbell_is_idle(t->l->doorbell);
    return got ? got : post_look(t->l->post);
}

static int one_turn(struct turn *t)
{
    bool some = take_from_server(t);
    int got = take_from_mpi(t);
    some |= got > 0;
    t->rung &= got == 0;
    some |= link_flush(t->l->link);
    t->now = clock_now();
    if (flight_quit_seen(t->l->flight))
        leave(t, "another courier leaves");
    flight_link(t->l->flight);
    flight_ring(t->l->flight);
    if (some)
        t->active_at = t->now;
    if (got < 0 || flight_broken(t->l->flight))
        return -EIO;
    if (t->leave_by && t->now > t->leave_by)
        return -EINTR;
    if (t->now - t->looked_at > LOOK_MS * MILLISECOND)
        return look_around(t, 0);
    if (some)
        return 0;
    if (t->now - t->active_at <= spin(t)) {
        sched_yield();
        return 0;
    }
    t->rung = false;
    return sleep_or_look(t);
}

static int open_sources(struct turn *t)
{
    int fds[2], error;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->signals = signals_open();
    if (t->epoll < 0 || t->signals < 0)
        return t->signals < 0 ? t->signals : -errno;
    doorbell_fds(t->l->doorbell, fds);
    error = watch(t->epoll, t->signals, FROM_SIGNALS);
    for (int i = 0; !error && i < 2; i++)
        if (fds[i] >= 0)
            error = watch(t->epoll, fds[i], FROM_DOORBELL);
    int sockets = sockets_find();
    if (!error && sockets >= 0 && watch(t->epoll, sockets, FROM_MPI) == 0)
        doorbell_sleeps_on(t->l->doorbell, sockets);
    return error ? error : watch_link(t);
}

int loop_run(struct loop *loop)
{
    struct turn t = {.l = loop, .epoll = -1, .signals = -1, .due = true};
    t.now = t.active_at = clock_now();
    int error = open_sources(&t);
    if (error)
        log_error("watch for events: %s", strerror(-error));
    flight_link(loop->flight);
    while (!error && !is_over(&t))
        error = one_turn(&t);
    hold_put(t.hold);
    if (t.epoll >= 0)
        close(t.epoll);
    if (t.signals >= 0)
        close(t.signals);
    return error;
}
