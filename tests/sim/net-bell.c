/* Simulates mpi/doorbell.h, sockets.h and signals.h. */
#include "mpi/doorbell.h"
#include "fs/base/clock.h"
#include "mpi/signals.h"
#include "mpi/sockets.h"
#include "tests/sim/faults.h"
#include "tests/sim/net-inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum { GONE_S = 3 };

struct doorbell {
    struct net_rank *rank;
    uint32_t looked;
    uint64_t quiet_since[NET_NODES];
};

int doorbell_create(uint32_t number, const uint8_t world[16], uint64_t secret, struct wire_bell *address,
                    struct doorbell **doorbell)
{
    (void)number, (void)world, (void)secret;
    struct doorbell *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    memset(address, 0, sizeof *address);
    address->magic = WIRE_MAGIC;
    d->rank = net_me;
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
        bells |= i != r->number && net_share_memory(r->world, i, r->number);
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
    if (!net_share_memory(to->world, node, d->rank->number))
        return;
    effects[EFFECT_RUNG]++;
    net_wake(sim_random(16) ? to->bell : -1);
}

bool doorbell_answer(struct doorbell *d, int bell)
{
    (void)bell;
    net_drain(d->rank->bell);
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
    return !d->rank->world->rank[node].gone && !net_share_memory(d->rank->world, node, d->rank->number);
}

uint64_t doorbell_answered(const struct doorbell *d, uint32_t node)
{
    uint64_t since = net_heard(d->rank->number, node);
    return since < sim_now() && !d->rank->world->rank[node].gone ? sim_now() - since : 0;
}

int sockets_find(void)
{
    return net_me->world->machines == 1 ? -ENOENT : net_me->sockets;
}

bool sockets_reach(int epoll, const uint8_t address[16])
{
    (void)epoll, (void)address;
    return true;
}

int signals_open(void)
{
    net_me->signals = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return net_me->signals;
}

int signals_take(void)
{
    net_drain(net_me->signals);
    return net_me->signal_at != 0;
}

void signals_obey(void)
{
}
