/* A turn of the loop takes what the server and MPI have, then rings those to whom something was sent. When there is
 * nothing left to do, we sleep on the server's bell, the doorbell, the socket, the signals, and MPI's sockets if it has
 * any.
 *
 * If peers are reached without sockets, MPI has nothing to sleep on. So after the last event, we keep checking for
 * SPIN, while yielding the processor. During sleep we then wake up regularly: soon while an answer is in progress,
 * since MPI needs several turns for large ones; more rarely the longer nothing arrives. */
#include "mpi/loop.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "mpi/signals.h"
#include "mpi/sockets.h"

#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

#define MICROSECOND UINT64_C(1000)

enum {
    SPIN_US = 50,
    BUSY_US = 400, /* how long to keep checking while bytes are in transit that MPI must push or pull */
    LOOK_MS = 1,   /* how often sockets and clock are checked while spinning */
    NAP_MOST_MS = 250,
    COUNT_MS = 1000,
    LEAVE_MS = 600, /* time for the others to learn that we leave: a launcher kills after a second */
    MESSAGES = 64,  /* maximum messages of the server per turn */
};

enum wake_source { FROM_LOCAL_BELL, FROM_UDP_BELL, FROM_RING, FROM_SERVER, FROM_SIGNALS, FROM_MPI };

struct loop_state {
    struct loop *l;
    int epoll;
    struct hold *hold;   /* the ring whose bell is in epoll; NULL: none */
    uint32_t connection; /* number of the connection whose socket is in epoll */
    uint64_t now, active_at, looked_at;
    uint64_t count_at; /* when to check for couriers that have ended */
    bool rung;         /* a bell came, and no MPI request has ended since */
    bool due;          /* MPI may have something to do */
    bool leaving;
    uint64_t leave_by; /* 0: not leaving yet */
};

/* The ring's bell is never read: each ring of it is an edge, which wakes once. */
static int watch_fd(int epoll, int fd, enum wake_source source)
{
    struct epoll_event e = {.events = source == FROM_RING ? EPOLLIN | EPOLLET : EPOLLIN, .data.u32 = source};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* After a server restart there are other descriptors. A closed socket leaves epoll by itself. */
static int watch_home(struct loop_state *t)
{
    const struct home *h = t->l->home;
    int error = 0;
    if (t->hold != h->hold) {
        if (t->hold)
            epoll_ctl(t->epoll, EPOLL_CTL_DEL, t->hold->ring.fd[RING_BELL_COURIER], NULL);
        hold_put(t->hold);
        t->hold = hold_get(h->hold);
        error = watch_fd(t->epoll, t->hold->ring.fd[RING_BELL_COURIER], FROM_RING);
    }
    if (!error && h->socket >= 0 && t->connection != h->connection) {
        t->connection = h->connection;
        error = watch_fd(t->epoll, h->socket, FROM_SERVER);
    }
    return error;
}

static void leave_world(struct loop_state *t, const char *why)
{
    if (t->leaving)
        return;
    t->leaving = true;
    log_info("leaving the world: %s", why);
    t->l->home->ending = true;
    home_end(t->l->home, "its courier left");
    flight_look(t->l->flight);
    flight_quit(t->l->flight);
    t->leave_by = t->now + LEAVE_MS * MILLISECOND;
}

static bool take_from_server(struct loop_state *t)
{
    struct ring_message m;
    int n = 0;
    while (n < MESSAGES && home_take(t->l->home, &m)) {
        flight_take(t->l->flight, &m);
        n++;
    }
    return n > 0;
}

static int take_events(struct loop_state *t, int wait_ms)
{
    struct epoll_event e[8];
    int n = epoll_wait(t->epoll, e, 8, wait_ms);
    t->now = clock_now();
    t->looked_at = t->now;
    for (int i = 0; i < n; i++)
        switch ((enum wake_source)e[i].data.u32) {
        case FROM_SERVER:
            while (take_from_server(t)) /* its last messages precede END or the hang-up */
                ;
            home_readable(t->l->home);
            break;
        case FROM_LOCAL_BELL:
        case FROM_UDP_BELL:
            t->rung |= doorbell_answer(t->l->doorbell, (int)e[i].data.u32);
            break;
        case FROM_SIGNALS:
            if (signals_take())
                leave_world(t, "a signal ended it");
            break;
        case FROM_MPI:
            t->due = true;
            break;
        case FROM_RING:
            break;
        }
    if (n > 0)
        t->active_at = t->now;
    else
        t->due = true;
    return n < 0 && errno != EINTR ? -errno : 0;
}

/* Detect couriers that ended without a report (mpirun, or its daemon on our machine, hangs), and lost messages. Without
 * us the others are not a world either: they learn that we leave, or notice that we are missing. */
static void count_couriers(struct loop_state *t)
{
    char why[96];
    uint32_t node;
    if (t->leaving || t->now < t->count_at)
        return;
    t->count_at = t->now + COUNT_MS * MILLISECOND;
    if (doorbell_misses(t->l->doorbell, &node))
        snprintf(why, sizeof why, "the courier of node %u has ended", node);
    else if (flight_misses(t->l->flight, t->now, &node))
        snprintf(why, sizeof why, "messages to or from node %u were lost", node);
    else
        return;
    leave_world(t, why);
}

/* Handles what is due by the clock and the state of the server, then updates the descriptors. */
static int look_around(struct loop_state *t, int wait_ms)
{
    int error = take_events(t, wait_ms);
    home_tick(t->l->home, t->now);
    flight_look(t->l->flight);
    flight_tick(t->l->flight, t->now);
    count_couriers(t);
    return error ? error : watch_home(t);
}

static int choose_nap(const struct loop_state *t)
{
    uint64_t nap = NAP_MOST_MS * MILLISECOND, idle = t->now - t->active_at;
    uint64_t next = home_next(t->l->home), due = flight_next(t->l->flight);
    if (flight_pending(t->l->flight) && idle / 4 < nap)
        nap = idle / 4;
    if (!STAILQ_EMPTY(&t->l->home->late) || nap < MILLISECOND)
        nap = MILLISECOND;
    next = next < due ? next : due;
    if (t->leave_by && t->leave_by < next)
        next = t->leave_by;
    if (next < t->now + nap)
        nap = next > t->now ? next - t->now : 0;
    return (int)((nap + MILLISECOND - 1) / MILLISECOND);
}

static int sleep_or_look(struct loop_state *t)
{
    struct ring *ring = t->l->home->state == HOME_LIVE ? &t->l->home->hold->ring : NULL;
    if (ring && !ring_may_sleep(&ring->shared->to_courier))
        return 0;
    struct hold *hold = ring ? hold_get(t->l->home->hold) : NULL;
    int error = look_around(t, choose_nap(t));
    if (hold)
        ring_awake(&hold->ring.shared->to_courier);
    hold_put(hold);
    return error;
}

/* How long to keep checking before sleeping. */
static uint64_t choose_spin(const struct loop_state *t)
{
    bool wakes = doorbell_is_idle(t->l->doorbell);
    bool bytes = (post_sends(t->l->post) > 0 && !wakes) || (t->rung && flight_asks(t->l->flight));
    return (bytes ? BUSY_US : wakes ? 0 : SPIN_US) * MICROSECOND;
}

/* Our last messages should be sent before we end; a peer that has ended does not receive them. */
static bool is_over(struct loop_state *t)
{
    if (!flight_world_ended(t->l->flight))
        return false;
    if (!t->leave_by)
        t->leave_by = t->now + LEAVE_MS * MILLISECOND;
    return post_sends(t->l->post) == 0 || t->now + MILLISECOND >= t->leave_by;
}

/* Number of MPI requests that have ended. */
static int take_from_mpi(struct loop_state *t)
{
    int got = t->due ? post_progress(t->l->post) : 0;
    t->due = !doorbell_is_idle(t->l->doorbell);
    return got ? got : post_look(t->l->post);
}

static int take_turn(struct loop_state *t)
{
    bool some = take_from_server(t);
    int got = take_from_mpi(t);
    some |= got > 0;
    t->rung &= got == 0;
    some |= home_flush(t->l->home);
    t->now = clock_now();
    if (flight_quit_seen(t->l->flight))
        leave_world(t, "another courier left");
    flight_look(t->l->flight);
    flight_ring(t->l->flight);
    if (some)
        t->active_at = t->now;
    if (got < 0 || flight_broken(t->l->flight))
        return -EIO;
    if (t->leave_by && t->now > t->leave_by && !flight_world_ended(t->l->flight))
        return -EINTR;
    if (t->now - t->looked_at > LOOK_MS * MILLISECOND)
        return look_around(t, 0);
    if (some)
        return 0;
    if (t->now - t->active_at <= choose_spin(t)) {
        sched_yield();
        return 0;
    }
    t->rung = false;
    return sleep_or_look(t);
}

static int open_sources(struct loop_state *t)
{
    int fds[2], error;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll < 0)
        return -errno;
    doorbell_fds(t->l->doorbell, fds);
    error = watch_fd(t->epoll, t->l->signals, FROM_SIGNALS);
    for (int i = 0; !error && i < 2; i++)
        if (fds[i] >= 0)
            error = watch_fd(t->epoll, fds[i], FROM_LOCAL_BELL + i);
    int sockets = sockets_find();
    if (!error && sockets >= 0 && watch_fd(t->epoll, sockets, FROM_MPI) == 0)
        doorbell_sleeps_on(t->l->doorbell, sockets);
    return error ? error : watch_home(t);
}

int loop_run(struct loop *loop)
{
    struct loop_state t = {.l = loop, .epoll = -1, .due = true};
    t.now = t.active_at = clock_now();
    int error = open_sources(&t);
    if (error)
        log_error("watch for events: %s", strerror(-error));
    flight_look(loop->flight);
    while (!error && !is_over(&t))
        error = take_turn(&t);
    hold_put(t.hold);
    if (t.epoll >= 0)
        close(t.epoll);
    return error;
}
