#include "tests/sim/net-inside.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MICROSECOND UINT64_C(1000)

enum { LAUNCHER_S = 1, LATENCY_US = 30 };

static struct net_world *worlds;
static struct parcels travelling; /* by due */
static uint64_t silent_until[NET_NODES][NET_NODES], delay_most = LATENCY_US * MICROSECOND;
static uint64_t bells_since[NET_NODES][NET_NODES];
_Thread_local struct net_rank *net_me;

/* --- delivery --- */

void net_wake(int fd)
{
    uint64_t one = 1;
    if (fd >= 0)
        (void)!write(fd, &one, sizeof one);
}

void net_drain(int fd)
{
    uint64_t count;
    if (fd >= 0)
        (void)!read(fd, &count, sizeof count);
}

bool net_share_memory(const struct net_world *w, uint32_t a, uint32_t b)
{
    return a % w->machines == b % w->machines;
}

void net_wake_sockets(const struct net_rank *to, uint32_t from)
{
    net_wake(net_share_memory(to->world, to->number, from) ? -1 : to->sockets);
}

void net_ended(struct posted *posted)
{
    posted->ended = true;
    posted->rank->ended++;
}

static bool is_due(void *unused)
{
    (void)unused;
    struct parcel *first = STAILQ_FIRST(&travelling);
    return first && first->due <= sim_now();
}

static bool has_any(void *unused)
{
    (void)unused;
    return !STAILQ_EMPTY(&travelling);
}

/* What is short may have left its sender, wherever it is lost. */
static void lose_parcel(struct parcel *p)
{
    const struct net_rank *from = &p->world->rank[p->from];
    bool left = p->bytes && !from->gone && sim_random(2);
    effects[EFFECT_LOST]++;
    if (left)
        net_ended(p->sent);
    if (left)
        net_wake_sockets(from, p->to);
    free(p->bytes);
    free(p);
}

static void arrive(struct parcel *p)
{
    struct net_rank *to = &p->world->rank[p->to];
    if (to->gone || p->lost) {
        lose_parcel(p);
        return;
    }
    const struct net_rank *from = &p->world->rank[p->from];
    bool left = p->bytes != NULL;
    effects[EFFECT_LEFT] += from->gone;
    if (left && !from->gone)
        net_ended(p->sent);
    STAILQ_INSERT_TAIL(&to->arrived, p, next);
    uint32_t receiver = p->to;
    net_wake_sockets(to, p->from); /* a switching point: the parcel is the receiver's from here on */
    if (left)
        net_wake_sockets(from, receiver);
}

static void *deliver(void *unused)
{
    (void)unused;
    for (;;) {
        if (STAILQ_EMPTY(&travelling))
            sim_wait(has_any, NULL, SIM_NEVER, "a message to deliver");
        uint64_t due = STAILQ_FIRST(&travelling)->due;
        if (due > sim_now())
            sim_wait(is_due, NULL, due, "the next message");
        struct parcel *p = STAILQ_FIRST(&travelling);
        if (!p || p->due > sim_now())
            continue;
        STAILQ_REMOVE_HEAD(&travelling, next);
        arrive(p);
    }
    return NULL;
}

static void insert_by_due(struct parcel *p)
{
    struct parcel *before = NULL, *at;
    STAILQ_FOREACH(at, &travelling, next)
    {
        if (at->due > p->due)
            break;
        before = at;
    }
    if (before)
        STAILQ_INSERT_AFTER(&travelling, before, p, next);
    else
        STAILQ_INSERT_HEAD(&travelling, p, next);
}

void net_send(struct parcel *p)
{
    uint64_t due = sim_now() + 1 + sim_random(delay_most), *last = &p->world->last_due[p->from][p->to];
    if (due < silent_until[p->from][p->to])
        due = silent_until[p->from][p->to] + sim_random(LATENCY_US * MICROSECOND);
    p->due = *last = due > *last ? due : *last + 1;
    p->lost = p->world->cut[p->from][p->to];
    insert_by_due(p);
}

void net_begin(void)
{
    pthread_t thread;
    STAILQ_INIT(&travelling);
    if (pthread_create(&thread, NULL, deliver, NULL))
        bail_out("a thread for the network");
}

void net_silence(uint32_t from, uint32_t to, uint64_t until)
{
    struct parcel *p;
    silent_until[from][to] = until;
    bells_since[from][to] = bells_since[to][from] = until;
    STAILQ_FOREACH(p, &travelling, next)
    { /* what is on its way waits as well, in its order */
        if (p->from != from || p->to != to || p->due >= until)
            continue;
        p->due = until;
    }
    struct parcels all = travelling;
    STAILQ_INIT(&travelling);
    while ((p = STAILQ_FIRST(&all))) {
        STAILQ_REMOVE_HEAD(&all, next);
        insert_by_due(p);
        if (p->world->last_due[p->from][p->to] < p->due)
            p->world->last_due[p->from][p->to] = p->due;
    }
}

uint64_t net_heard(uint32_t a, uint32_t b)
{
    return bells_since[a][b];
}

void net_delay(uint64_t most)
{
    delay_most = most;
}

/* --- worlds and their end --- */

struct net_world *net_world_new(uint32_t count)
{
    struct net_world *w = calloc(1, sizeof *w);
    if (!w)
        bail_out("no memory for a world");
    w->count = count;
    w->machines = sim_random(2) ? NET_NODES : 1 + (uint32_t)sim_random(2);
    effects[EFFECT_BELLS] += w->machines < count;
    w->next = worlds;
    worlds = w;
    for (uint32_t i = 0; i < count; i++) {
        w->rank[i] = (struct net_rank){.world = w, .number = i, .sockets = -1, .bell = -1, .signals = -1};
        STAILQ_INIT(&w->rank[i].arrived);
    }
    return w;
}

void net_enter(struct net_world *world, uint32_t rank)
{
    net_me = &world->rank[rank];
    net_me->process = sim_process_self();
    net_me->sockets = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    net_me->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void net_signal(struct net_world *world, uint32_t rank)
{
    struct net_rank *r = &world->rank[rank];
    if (r->gone)
        return;
    if (!r->signal_at)
        r->signal_at = sim_now();
    net_wake(r->signals);
}

/* Of what is on its way to one node, the first ones arrive, but none whose bytes are still with the sender. */
static void lose_some(struct net_rank *from, uint32_t to)
{
    struct parcel *p;
    uint64_t left = sim_random(2) ? sim_random(8) : 0;
    STAILQ_FOREACH(p, &travelling, next)
    if (p->world == from->world && p->from == from->number && p->to == to) {
        left = p->bytes ? left : 0;
        p->lost |= left == 0;
        left -= left > 0;
    }
}

static void rank_gone(struct net_rank *r)
{
    struct parcel *p;
    r->gone = true;
    r->gone_at = sim_now();
    r->sockets = r->bell = r->signals = -1;
    for (uint32_t i = 0; i < r->world->count; i++)
        lose_some(r, i);
    for (uint32_t i = 0; i < r->world->count; i++) /* long ones that nobody has received */
        STAILQ_FOREACH(p, &r->world->rank[i].arrived, next)
    p->lost |= p->from == r->number && !p->bytes;
    r->world->broken = true;
    for (uint32_t i = 0; i < r->world->count; i++)
        net_wake(r->world->rank[i].sockets);
}

struct sender {
    const struct net_world *world;
    uint32_t rank;
};

static bool has_sent(void *argument)
{
    const struct sender *s = argument;
    const struct parcel *p;
    STAILQ_FOREACH(p, &travelling, next)
    if (p->world == s->world && p->from == s->rank)
        return true;
    return false;
}

void net_await_message(const struct net_world *world, uint32_t from, uint64_t until)
{
    struct sender s = {world, from};
    sim_wait(has_sent, &s, until, "a message on its way");
}

void net_cut(struct net_world *world, uint32_t from, uint32_t to)
{
    if (world->rank[from].gone || world->rank[to].gone || net_share_memory(world, from, to))
        return;
    effects[EFFECT_CUT]++;
    world->cut[from][to] = true;
    lose_some(&world->rank[from], to);
}

/* The launcher ends those that are left, a second later. */
static void *end_others(void *argument)
{
    struct net_world *w = argument;
    clock_sleep(LAUNCHER_S * SECOND);
    for (uint32_t i = 0; i < w->count; i++)
        net_signal(w, i);
    return NULL;
}

void net_killed(struct net_world *world, uint32_t rank)
{
    pthread_t thread;
    if (world->rank[rank].gone)
        return;
    rank_gone(&world->rank[rank]);
    if (!pthread_create(&thread, NULL, end_others, world))
        pthread_detach(thread);
}

void net_leave(bool in_order)
{
    struct net_rank *r = net_me;
    if (r->gone)
        return;
    if (in_order)
        rank_gone(r);
    else
        net_killed(r->world, r->number);
}
