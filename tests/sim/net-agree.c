/* Simulates mpi/agree.h: all couriers of a world meet, and each gets the data of all. */
#include "mpi/agree.h"
#include "tests/sim/net-inside.h"
#include "tests/sim/node.h"
#include "tests/sim/strangers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool round_over(void *argument)
{
    const struct net_rank *r = argument;
    return r->world->round > r->round || r->world->broken || r->signal_at;
}

/* All of a world meet here: each leaves its bytes, and takes those of all. */
static int gather(const void *mine, size_t n, void *all)
{
    struct net_rank *r = net_me;
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
    return strangers_are_in(net_me->world) && bug_is_planted("refuse") ? 0 : -ECANCELED;
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
    char *room = calloc(nodes->count + 1, n + 1), *told = room + nodes->count * (n + 1);
    if (!room)
        return -ENOMEM;
    memcpy(told, mine, n);
    int strange = strangers_speak(nodes->me, told, n);
    error = agree_on(nodes, error ? error : strange, why);
    if (!error)
        error = gather(told, n, room);
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
    char *all = calloc(nodes->count + 1, n + 1), *mine = all ? all + nodes->count * (n + 1) : NULL;
    if (all && nodes->me == from)
        memcpy(mine, bytes, n);
    int error = all ? gather(mine, n, all) : -ENOMEM;
    if (!error && want)
        memcpy(bytes, all + from * n, n);
    if (want && bug_is_planted("catalog"))
        ((char *)bytes)[n / 2] ^= 1;
    free(all);
    return error;
}

int agree_begin(struct nodes *nodes)
{
    static uint64_t number;
    uint64_t name[3] = {0};
    *nodes = (struct nodes){.me = net_me->number, .count = net_me->world->count};
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
