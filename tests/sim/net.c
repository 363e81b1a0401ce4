#include "tests/sim/net.h"

#include "fs/base/clock.h"
#include "mpi/agree.h"
#include "mpi/doorbell.h"
#include "mpi/post.h"
#include "mpi/signals.h"
#include "mpi/sockets.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define MICROSECOND UINT64_C(1000)

enum { RENDEZVOUS = 64 << 10, GONE_S = 3, LAUNCHER_S = 1, LATENCY_US = 30 };

/* A message from post_send on. Its bytes are the sender's until it has been received, or, where it is short, left. */
struct parcel {
    STAILQ_ENTRY(parcel) next;
    uint64_t due;
    uint32_t from, to;
    int tag;
    size_t n;
    char *bytes; /* a copy; NULL: long, the sender's are read when it is received */
    struct posted *sent;
    struct net_world *world;
    bool lost; /* its sender is gone */
};
STAILQ_HEAD(parcels, parcel);

struct posted {
    STAILQ_ENTRY(posted) next;
    bool send, ended;
    void *bytes;
    size_t n, got;
    int from, tag, status;
    uint32_t source;
    post_done *done;
    void *user;
};
STAILQ_HEAD(posted_list, posted);

struct posts {
    struct net_rank *rank;
    struct posted_list list;
    unsigned sends;
};

struct net_rank {
    struct net_world *world;
    uint32_t number;
    struct sim_process *process; /* NULL: not started yet */
    struct posts *posts;
    struct parcels arrived; /* and not received yet */
    int sockets, bell, signals;
    uint64_t signal_at; /* 0: none */
    bool gone;
    uint64_t gone_at;
    uint64_t round; /* of the join, that it is in */
};

struct net_world {
    uint32_t count;
    struct net_rank rank[NET_NODES];
    bool broken; /* a courier is gone, and the world had not formed */
    /* of the round that all are in: */
    uint64_t round;
    uint32_t arrived;
    char *all[2]; /* of this round, and of the one before, which some may still have to take */
    size_t n;
    uint64_t last_due[NET_NODES][NET_NODES];
    bool cut[NET_NODES][NET_NODES]; /* from, to: nothing arrives any more */
    uint32_t machines;              /* its couriers are on; those on one machine have shared memory, and bells */
    struct net_world *next;
};

struct doorbell {
    struct net_rank *rank;
    uint32_t looked;
    uint64_t quiet_since[NET_NODES];
};

static struct net_world *worlds;
static struct parcels travelling; /* by due */
static uint64_t silent_until[NET_NODES][NET_NODES], delay_most = LATENCY_US * MICROSECOND;
static uint64_t bells_since[NET_NODES][NET_NODES];
static _Thread_local struct net_rank *me;

/* ---- delivery ---- */

static void wake(int fd)
{
    uint64_t one = 1;
    if (fd >= 0)
        (void)!write(fd, &one, sizeof one);
}

static void drain(int fd)
{
    uint64_t count;
    if (fd >= 0)
        (void)!read(fd, &count, sizeof count);
}

static bool share_memory(const struct net_world *w, uint32_t a, uint32_t b)
{
    return a % w->machines == b % w->machines;
}

/* Of those who have no shared memory with it. */
static void wake_sockets(const struct net_rank *to, uint32_t from)
{
    wake(share_memory(to->world, to->number, from) ? -1 : to->sockets);
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
        p->sent->ended = true;
    if (left)
        wake_sockets(from, p->to);
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
        p->sent->ended = true;
    STAILQ_INSERT_TAIL(&to->arrived, p, next);
    uint32_t receiver = p->to;
    wake_sockets(to, p->from); /* a switching point: the parcel is the receiver's from here on */
    if (left)
        wake_sockets(from, receiver);
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

static void travel(struct parcel *p)
{
    uint64_t due = sim_now() + 1 + sim_random(delay_most), *last = &p->world->last_due[p->from][p->to];
    if (due < silent_until[p->from][p->to])
        due = silent_until[p->from][p->to] + sim_random(LATENCY_US * MICROSECOND);
    p->due = *last = due > *last ? due : *last + 1;
    p->lost = p->world->cut[p->from][p->to];
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
        p->due += until - sim_now();
    }
    struct parcels all = travelling;
    STAILQ_INIT(&travelling);
    while ((p = STAILQ_FIRST(&all))) {
        STAILQ_REMOVE_HEAD(&all, next);
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
        if (p->world->last_due[p->from][p->to] < p->due)
            p->world->last_due[p->from][p->to] = p->due;
    }
}

void net_delay(uint64_t most)
{
    delay_most = most;
}

/* ---- worlds and their end ---- */

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
    me = &world->rank[rank];
    me->process = sim_process_self();
    me->sockets = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    me->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void net_signal(struct net_world *world, uint32_t rank)
{
    struct net_rank *r = &world->rank[rank];
    if (r->gone)
        return;
    if (!r->signal_at)
        r->signal_at = sim_now();
    wake(r->signals);
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
        wake(r->world->rank[i].sockets);
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
    if (world->rank[from].gone || world->rank[to].gone || share_memory(world, from, to))
        return;
    effects[EFFECT_CUT]++;
    world->cut[from][to] = true;
    lose_some(&world->rank[from], to);
}

/* The launcher ends those that are left, a second later. */
struct ending {
    struct net_world *world;
};

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
    struct net_rank *r = me;
    if (r->gone)
        return;
    if (in_order)
        rank_gone(r);
    else
        net_killed(r->world, r->number);
}

/* ---- mpi/post.h ---- */

int post_create(struct posts **post)
{
    struct posts *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->rank = me;
    STAILQ_INIT(&p->list);
    me->posts = p;
    *post = p;
    return 0;
}

void post_destroy(struct posts *post)
{
    struct posted *p;
    if (!post)
        return;
    post->rank->posts = NULL;
    while ((p = STAILQ_FIRST(&post->list))) {
        STAILQ_REMOVE_HEAD(&post->list, next);
        if (!p->send || p->ended)
            free(p);
    }
    free(post);
}

static struct posted *post_add(struct posts *post, const struct posted *what)
{
    struct posted *p = malloc(sizeof *p);
    if (!p)
        return NULL;
    *p = *what;
    STAILQ_INSERT_TAIL(&post->list, p, next);
    return p;
}

int post_receive(struct posts *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user)
{
    const struct posted what = {.bytes = bytes, .n = n, .from = from, .tag = tag, .done = done, .user = user};
    return post_add(post, &what) ? 0 : -ENOMEM;
}

int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    const struct posted what = {.send = true, .bytes = (void *)bytes, .n = n, .tag = tag, .done = done, .user = user};
    struct parcel *parcel = calloc(1, sizeof *parcel);
    struct posted *p = parcel ? post_add(post, &what) : NULL;
    if (!p) {
        free(parcel);
        return -ENOMEM;
    }
    *parcel = (struct parcel){
        .from = post->rank->number, .to = to, .tag = tag, .n = n, .sent = p, .world = post->rank->world};
    if (n < RENDEZVOUS) {
        parcel->bytes = malloc(n + 1);
        if (!parcel->bytes)
            bail_out("no memory for a message");
        memcpy(parcel->bytes, bytes, n);
    }
    post->sends++;
    travel(parcel);
    return 0;
}

static struct posted *find_receive(struct posts *post, const struct parcel *parcel)
{
    struct posted *p;
    STAILQ_FOREACH(p, &post->list, next)
    if (!p->send && !p->ended && p->tag == parcel->tag && (p->from == POST_ANY || p->from == (int)parcel->from))
        return p;
    return NULL;
}

/* Whether its sender is to be woken. */
static bool receive(struct posted *p, struct parcel *parcel)
{
    p->got = parcel->n < p->n ? parcel->n : p->n;
    p->status = parcel->n > p->n ? -EMSGSIZE : 0;
    p->source = parcel->from;
    memcpy(p->bytes, parcel->bytes ? parcel->bytes : parcel->sent->bytes, p->got);
    p->ended = true;
    if (!parcel->bytes)
        parcel->sent->ended = true;
    return !parcel->bytes;
}

static void match_arrived(struct posts *post)
{
    struct net_rank *r = post->rank;
    uint32_t senders = 0;
    for (struct parcel *parcel = STAILQ_FIRST(&r->arrived), *next; parcel; parcel = next) {
        next = STAILQ_NEXT(parcel, next);
        struct posted *p = parcel->lost ? NULL : find_receive(post, parcel);
        if (!p && !parcel->lost)
            continue;
        STAILQ_REMOVE(&r->arrived, parcel, parcel, next);
        if (p && receive(p, parcel))
            senders |= 1u << parcel->from;
        free(parcel->bytes);
        free(parcel);
    }
    for (uint32_t i = 0; senders; i++, senders >>= 1)
        if (senders & 1)
            wake_sockets(&r->world->rank[i], r->number);
}

int post_progress(struct posts *post)
{
    int ended = 0;
    struct posted *p, *next;
    drain(post->rank->sockets);
    match_arrived(post);
    for (p = STAILQ_FIRST(&post->list); p; p = next) {
        next = STAILQ_NEXT(p, next);
        if (!p->ended)
            continue;
        STAILQ_REMOVE(&post->list, p, posted, next);
        post->sends -= p->send;
        p->done(p->user, p->status, p->source, p->got);
        free(p);
        ended++;
        next = STAILQ_FIRST(&post->list); /* `done` may have posted and cancelled others */
    }
    return ended;
}

int post_look(struct posts *post)
{
    (void)post;
    return 0;
}

unsigned post_sends(const struct posts *post)
{
    return post->sends;
}

/* ---- mpi/agree.h ---- */

static bool round_over(void *argument)
{
    const struct net_rank *r = argument;
    return r->world->round > r->round || r->world->broken || r->signal_at;
}

/* All of a world meet here: each leaves its bytes, and takes those of all. */
static int gather(const void *mine, size_t n, void *all)
{
    struct net_rank *r = me;
    struct net_world *w = r->world;
    char **room = &w->all[w->round % 2];
    if (w->arrived == 0) {
        free(*room);
        *room = calloc(w->count, n + 1);
        w->n = n;
    }
    if (!*room || w->n != n)
        sim_fail("couriers of one world say different things: %zu and %zu bytes", n, w->n);
    memcpy(*room + r->number * n, mine, n);
    r->round = w->round;
    if (++w->arrived == w->count) {
        w->arrived = 0;
        w->round++;
    }
    sim_wait(round_over, r, SIM_NEVER, "the other couriers of the join");
    if (w->round == r->round)
        return -EIO;
    memcpy(all, *room, w->count * n);
    return 0;
}

const char *agree_name(const struct nodes *nodes, uint32_t node)
{
    static char names[4][32];
    static unsigned next;
    char *name = names[next++ % 4];
    (void)nodes;
    snprintf(name, sizeof names[0], "node %u", node);
    return name;
}

int agree_refuse(const struct nodes *nodes, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (nodes->me == 0)
        sim_log("the world does not form: %s", line);
    return -ECANCELED;
}

struct verdict {
    int status;
    char why[256];
};

int agree_on(const struct nodes *nodes, int error, const struct str *why)
{
    struct verdict mine = {.status = error}, all[NET_NODES];
    if (error)
        snprintf(mine.why, sizeof mine.why, "%s", why && why->length ? why->data : strerror(-error));
    int failed = gather(&mine, sizeof mine, all);
    for (uint32_t i = 0; !failed && i < nodes->count; i++)
        if (all[i].status)
            failed = agree_refuse(nodes, "node %u: %s", i, all[i].why);
    return failed;
}

int agree_collect(const struct nodes *nodes, int error, const struct str *why, const void *mine, size_t n, void *all)
{
    error = agree_on(nodes, error, why);
    void *room = error ? NULL : calloc(nodes->count, n + 1);
    if (!error)
        error = room ? gather(mine, n, room) : -ENOMEM;
    if (error)
        free(room);
    else
        memcpy(all, &room, sizeof room);
    return error;
}

int agree_share(const struct nodes *nodes, uint32_t from, void *bytes, size_t n)
{
    char *all = calloc(nodes->count, n + 1);
    int error = all ? gather(bytes, n, all) : -ENOMEM;
    if (!error)
        memcpy(bytes, all + from * n, n);
    free(all);
    return error;
}

int agree_share_some(const struct nodes *nodes, uint32_t from, bool want, void *bytes, size_t n)
{
    (void)nodes, (void)from, (void)bytes, (void)n;
    if (want)
        sim_fail("a catalog is shared, and all nodes have one");
    return 0;
}

int agree_begin(struct nodes *nodes)
{
    static uint64_t number;
    uint64_t name[3] = {0};
    *nodes = (struct nodes){.me = me->number, .count = me->world->count};
    nodes->host = calloc(nodes->count, sizeof *nodes->host);
    if (!nodes->host)
        return -ENOMEM;
    if (nodes->me == 0)
        name[0] = ++number, name[1] = sim_random(UINT64_MAX), name[2] = sim_random(UINT64_MAX);
    int error = agree_share(nodes, 0, name, sizeof name);
    memcpy(nodes->world, name, sizeof nodes->world);
    nodes->secret = name[2];
    return error;
}

void agree_end(struct nodes *nodes)
{
    free(nodes->host);
    *nodes = (struct nodes){0};
}

/* ---- mpi/doorbell.h, sockets.h, signals.h ---- */

int doorbell_create(uint32_t number, const uint8_t world[16], uint64_t secret, struct wire_bell *address,
                    struct doorbell **doorbell)
{
    (void)number, (void)world, (void)secret;
    struct doorbell *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    memset(address, 0, sizeof *address);
    address->magic = WIRE_MAGIC;
    d->rank = me;
    *doorbell = d;
    return 0;
}

void doorbell_destroy(struct doorbell *d)
{
    free(d);
}

int doorbell_connect(struct doorbell *d, const struct wire_bell *all, uint32_t nodes)
{
    (void)d, (void)all, (void)nodes;
    return 0;
}

void doorbell_sleeps_on(struct doorbell *d, int sockets)
{
    (void)d, (void)sockets;
}

bool doorbell_is_idle(const struct doorbell *d)
{
    const struct net_rank *r = d->rank;
    bool bells = false;
    for (uint32_t i = 0; i < r->world->count; i++)
        bells |= i != r->number && share_memory(r->world, i, r->number);
    return !bells;
}

void doorbell_fds(const struct doorbell *d, int fds[2])
{
    fds[0] = d->rank->bell;
    fds[1] = -1;
}

/* Where there are sockets, what is sent wakes by itself. Otherwise some bells are lost, which costs time only. */
void doorbell_ring(struct doorbell *d, uint32_t node)
{
    const struct net_rank *to = &d->rank->world->rank[node];
    if (!share_memory(to->world, node, d->rank->number))
        return;
    effects[EFFECT_RUNG]++;
    wake(sim_random(16) ? to->bell : -1);
}

bool doorbell_answer(struct doorbell *d)
{
    drain(d->rank->bell);
    return true;
}

bool doorbell_misses(struct doorbell *d, uint32_t *node)
{
    const struct net_world *w = d->rank->world;
    *node = d->looked;
    d->looked = (d->looked + 1) % w->count;
    const struct net_rank *other = &w->rank[*node];
    return other->gone && sim_now() - other->gone_at >= GONE_S * SECOND;
}

bool doorbell_reaches(const struct doorbell *d, uint32_t node)
{
    return !d->rank->world->rank[node].gone && !share_memory(d->rank->world, node, d->rank->number);
}

uint64_t doorbell_answered(const struct doorbell *d, uint32_t node)
{
    uint64_t since = bells_since[d->rank->number][node];
    return since < sim_now() && !d->rank->world->rank[node].gone ? sim_now() - since : 0;
}

int sockets_find(void)
{
    return me->world->machines == 1 ? -ENOENT : me->sockets;
}

bool sockets_reach(int epoll, const uint8_t address[16])
{
    (void)epoll, (void)address;
    return true;
}

int signals_open(void)
{
    me->signals = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return me->signals;
}

int signals_take(void)
{
    drain(me->signals);
    return me->signal_at != 0;
}

void signals_obey(void)
{
}
