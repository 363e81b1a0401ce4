/* Spreading, by a tournament: a binary tree over the nodes, where each inner place knows who is least full below it,
 * and the most that is free below it. Nearly always who wins at the top has room. Where not, the search goes down only
 * into places that could give a better one with room; those with little room lie side by side, so that it leaves them
 * out together. */
#include "fs/world/spread.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

struct contender {
    uint64_t room, dealt;
    uint32_t number;
};

struct place {
    uint64_t free; /* the most of all below */
    uint32_t best; /* the contender that is least full, with room or without; SPREAD_NONE: nobody is below */
};

struct spread {
    uint64_t typical;
    uint32_t contenders, leaves; /* leaves: a power of two */
    struct contender *contender; /* those with any room, by room, then by number */
    struct place *place;         /* 1 is the top; below n are 2n and 2n + 1; leaf i is leaves + i */
};

static int by_room(const void *a, const void *b)
{
    const struct contender *x = a, *y = b;
    if (x->room != y->room)
        return x->room < y->room ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Is a less full than b? Nobody is fuller than anybody. */
static bool before(const struct spread *s, uint32_t a, uint32_t b)
{
    if (a == SPREAD_NONE || b == SPREAD_NONE)
        return b == SPREAD_NONE && a != SPREAD_NONE;
    const struct contender *x = &s->contender[a], *y = &s->contender[b];
    wide left = (wide)(x->dealt + s->typical) * y->room, right = (wide)(y->dealt + s->typical) * x->room;
    return left != right ? left < right : x->number < y->number;
}

static void set_leaf(struct spread *s, uint32_t i)
{
    const struct contender *c = &s->contender[i];
    s->place[s->leaves + i] = (struct place){c->room - c->dealt, i};
}

static void set_inner(struct spread *s, uint32_t at)
{
    const struct place *left = &s->place[2 * at], *right = left + 1;
    s->place[at].free = left->free > right->free ? left->free : right->free;
    s->place[at].best = before(s, right->best, left->best) ? right->best : left->best;
}

static void take_contenders(struct spread *s, const uint64_t *room, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (room[i])
            s->contender[s->contenders++] =
                (struct contender){.room = room[i] < SPREAD_MOST ? room[i] : SPREAD_MOST, .number = i};
    qsort(s->contender, s->contenders, sizeof *s->contender, by_room);
    for (s->leaves = 1; s->leaves < s->contenders;)
        s->leaves *= 2;
}

static void build(struct spread *s)
{
    for (uint32_t i = 0; i < s->leaves; i++)
        s->place[s->leaves + i] = (struct place){0, SPREAD_NONE};
    for (uint32_t i = 0; i < s->contenders; i++)
        set_leaf(s, i);
    for (uint32_t at = s->leaves - 1; at > 0; at--)
        set_inner(s, at);
}

int spread_create(const uint64_t *room, uint32_t nodes, uint64_t typical, struct spread **out)
{
    struct spread *s = calloc(1, sizeof *s);
    if (s)
        s->contender = calloc(nodes + 1, sizeof *s->contender);
    if (!s || !s->contender)
        goto error;
    s->typical = typical < SPREAD_MOST ? typical : SPREAD_MOST;
    take_contenders(s, room, nodes);
    s->place = calloc(2 * (size_t)s->leaves, sizeof *s->place);
    if (!s->place)
        goto error;
    build(s);
    *out = s;
    return 0;
error:
    spread_destroy(s);
    return -ENOMEM;
}

void spread_destroy(struct spread *s)
{
    if (!s)
        return;
    int saved = errno;
    free(s->place);
    free(s->contender);
    free(s);
    errno = saved;
}

static void search(const struct spread *s, uint32_t at, uint64_t cost, uint32_t *found)
{
    const struct place *place = &s->place[at];
    if (place->free < cost || !before(s, place->best, *found))
        return;
    const struct place *leaf = &s->place[s->leaves + place->best];
    if (leaf->free >= cost) {
        *found = place->best;
        return;
    }
    uint32_t first = before(s, s->place[2 * at + 1].best, s->place[2 * at].best) ? 1 : 0;
    search(s, 2 * at + first, cost, found);
    search(s, 2 * at + 1 - first, cost, found);
}

uint32_t spread_next(struct spread *s, uint64_t cost)
{
    uint32_t found = SPREAD_NONE;
    search(s, 1, cost, &found);
    if (found == SPREAD_NONE)
        return SPREAD_NONE;
    s->contender[found].dealt += cost;
    set_leaf(s, found);
    for (uint32_t at = (s->leaves + found) / 2; at > 0; at /= 2)
        set_inner(s, at);
    return s->contender[found].number;
}
