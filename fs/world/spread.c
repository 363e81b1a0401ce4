/* Spreading by a tournament: a binary tree over the nodes. Each inner place records which node below it is next, and
 * the largest free room below it. Nearly always the winner at the top has room. If not, the search descends only into
 * places that could contain a better node with room. Nodes with little room are neighbours, so whole subtrees are
 * skipped. */
#include "fs/world/spread.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

struct contender {
    uint64_t free, share, given;
    uint32_t number;
};

struct spread_place {
    uint64_t free; /* the largest free room below */
    uint32_t best; /* the contender that is next, with or without room; SPREAD_NONE: no contender below */
};

struct spread {
    uint32_t contenders, leaves; /* leaves: a power of two */
    struct contender *contender; /* nodes with room, sorted by room, then by number */
    struct spread_place *place;  /* 1 is the top; n has the children 2n and 2n + 1; leaf i is leaves + i */
};

/* --- shares --- */

/* What a node gets when all are filled up to this level. */
static uint64_t share_at(const struct spread_node *node, uint64_t mean, uint64_t level)
{
    uint64_t lacks = level > node->count ? level - node->count : 0, fits = node->room / mean;
    return lacks < fits ? lacks : fits;
}

static uint64_t shares_at(const struct spread_node *node, uint32_t nodes, uint64_t mean, uint64_t level)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += share_at(&node[i], mean, level);
    return sum;
}

/* The highest level for which there are enough extents. Above some level nothing changes. */
static uint64_t find_level(const struct spread_node *node, uint32_t nodes, uint64_t extents, uint64_t mean)
{
    uint64_t low = 0, high = extents;
    for (uint32_t i = 0; i < nodes; i++)
        high = node[i].count + extents > high ? node[i].count + extents : high;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (shares_at(node, nodes, mean, middle) <= extents)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Extents that remain below the next level go to the first nodes that can take one more. */
static void set_shares(struct spread *s, const struct spread_node *node, uint32_t nodes, uint64_t extents,
                       uint64_t mean)
{
    uint64_t level = find_level(node, nodes, extents, mean), over = extents - shares_at(node, nodes, mean, level);
    for (uint32_t i = 0; i < nodes; i++) {
        uint64_t share = share_at(&node[i], mean, level), more = share_at(&node[i], mean, level + 1) - share;
        if (over < more)
            more = over;
        over -= more;
        if (node[i].room)
            s->contender[s->contenders++] =
                (struct contender){.free = node[i].room, .share = share + more, .number = i};
    }
}

/* --- the tournament --- */

static int by_room(const void *a, const void *b)
{
    const struct contender *x = a, *y = b;
    if (x->free != y->free)
        return x->free < y->free ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Is a's turn before b's? SPREAD_NONE is never first. */
static bool before(const struct spread *s, uint32_t a, uint32_t b)
{
    if (a == SPREAD_NONE || b == SPREAD_NONE)
        return b == SPREAD_NONE && a != SPREAD_NONE;
    const struct contender *x = &s->contender[a], *y = &s->contender[b];
    wide left = (wide)(x->given + 1) * y->share, right = (wide)(y->given + 1) * x->share;
    if (left != right)
        return left < right;
    return x->given != y->given ? x->given < y->given : x->number < y->number;
}

static void set_leaf(struct spread *s, uint32_t i)
{
    s->place[s->leaves + i] = (struct spread_place){s->contender[i].free, i};
}

static void set_inner(struct spread *s, uint32_t at)
{
    const struct spread_place *left = &s->place[2 * at], *right = left + 1;
    s->place[at].free = left->free > right->free ? left->free : right->free;
    s->place[at].best = before(s, right->best, left->best) ? right->best : left->best;
}

static void build(struct spread *s)
{
    qsort(s->contender, s->contenders, sizeof *s->contender, by_room);
    for (uint32_t i = 0; i < s->leaves; i++)
        s->place[s->leaves + i] = (struct spread_place){0, SPREAD_NONE};
    for (uint32_t i = 0; i < s->contenders; i++)
        set_leaf(s, i);
    for (uint32_t at = s->leaves - 1; at > 0; at--)
        set_inner(s, at);
}

int spread_create(const struct spread_node *node, uint32_t nodes, uint64_t extents, uint64_t mean, struct spread **out)
{
    struct spread *s = calloc(1, sizeof *s);
    if (s)
        s->contender = calloc(nodes + 1, sizeof *s->contender);
    if (!s || !s->contender)
        goto error;
    set_shares(s, node, nodes, extents, mean);
    for (s->leaves = 1; s->leaves < s->contenders;)
        s->leaves *= 2;
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
    free(s->place);
    free(s->contender);
    free(s);
}

static void search(const struct spread *s, uint32_t at, uint64_t cost, uint32_t *found)
{
    const struct spread_place *place = &s->place[at];
    if (place->free < cost || !before(s, place->best, *found))
        return;
    const struct spread_place *leaf = &s->place[s->leaves + place->best];
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
    s->contender[found].free -= cost;
    s->contender[found].given++;
    set_leaf(s, found);
    for (uint32_t at = (s->leaves + found) / 2; at > 0; at /= 2)
        set_inner(s, at);
    return s->contender[found].number;
}
