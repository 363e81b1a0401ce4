/* Spreading, against the plain rule: look at all nodes for each extent. */
#include "fs/world/spread.h"

#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

__extension__ typedef unsigned __int128 wide;

enum { NODES = 40 };

struct plain {
    struct spread_node node[NODES];
    uint64_t share[NODES], given[NODES];
    uint32_t nodes;
};

/* One extent after the other to who has fewest and still has room at that mean. */
static void plain_shares(struct plain *p, uint64_t extents, uint64_t mean)
{
    while (extents-- > 0) {
        uint32_t least = SPREAD_NONE;
        for (uint32_t i = 0; i < p->nodes; i++)
            if (p->share[i] < p->node[i].room / mean &&
                (least == SPREAD_NONE || p->node[i].count + p->share[i] < p->node[least].count + p->share[least]))
                least = i;
        if (least == SPREAD_NONE)
            return;
        p->share[least]++;
    }
}

static uint32_t plain_next(struct plain *p, uint64_t cost)
{
    uint32_t best = SPREAD_NONE;
    for (uint32_t i = 0; i < p->nodes; i++) {
        if (p->node[i].room == 0 || p->node[i].room < cost)
            continue;
        wide mine = 0, its = 0;
        if (best != SPREAD_NONE) {
            mine = (wide)(p->given[i] + 1) * p->share[best];
            its = (wide)(p->given[best] + 1) * p->share[i];
        }
        if (best == SPREAD_NONE || mine < its || (mine == its && p->given[i] < p->given[best]))
            best = i;
    }
    if (best != SPREAD_NONE) {
        p->node[best].room -= cost;
        p->given[best]++;
    }
    return best;
}

/* Until nothing fits any more, and a little on. */
static bool same_as_plain(uint64_t *random, uint64_t most_room, uint64_t most_cost)
{
    struct plain p = {.nodes = (uint32_t)random_below(random, NODES) + 1};
    uint64_t mean = most_cost / 2 + 1, extents = random_below(random, 2 * p.nodes * (most_room / mean + 2));
    bool alike = random_below(random, 2);
    for (uint32_t i = 0; i < p.nodes; i++)
        p.node[i] = alike && i
                        ? p.node[0]
                        : (struct spread_node){.room = random_below(random, 4) ? random_below(random, most_room) : 0,
                                               .count = random_below(random, 3) ? random_below(random, 300) : 0};
    struct spread *s;
    if (spread_create(p.node, p.nodes, extents, mean, &s))
        bail_out("no memory");
    plain_shares(&p, extents, mean);
    bool same = true;
    for (int nowhere = 0; nowhere < 20;) {
        uint64_t cost = random_below(random, most_cost) + 1;
        uint32_t node = spread_next(s, cost);
        same &= node == plain_next(&p, cost);
        nowhere += node == SPREAD_NONE;
    }
    spread_destroy(s);
    return same;
}

static void test_random(void)
{
    uint64_t random = 7;
    unsigned wrong = 0;
    for (int round = 0; round < 300; round++)
        wrong += !same_as_plain(&random, 1 + random_below(&random, 100000), 1 + random_below(&random, 1000));
    is_uint(wrong, 0, "300 random spreads are as the plain rule says");
    for (int round = 0; round < 20; round++)
        wrong += !same_as_plain(&random, (uint64_t)1 << 62, (uint64_t)1 << 57);
    is_uint(wrong, 0, "also with large numbers");
}

static void test_edges(void)
{
    static const struct spread_node none[3], all[2] = {{UINT64_MAX, 0}, {UINT64_MAX, 0}},
                                             three[3] = {{9, 7}, {9, 0}, {9, 2}};
    struct spread *s;
    is_int(spread_create(none, 3, 1, 1, &s), 0, "nodes without room");
    is_uint(spread_next(s, 1), SPREAD_NONE, "have nothing");
    spread_destroy(s);
    is_int(spread_create(none, 0, 1, 1, &s), 0, "no nodes");
    is_uint(spread_next(s, 1), SPREAD_NONE, "have nothing either");
    spread_destroy(s);
    is_int(spread_create(all, 2, 2, UINT64_MAX, &s), 0, "more room than there can be");
    is_uint(spread_next(s, UINT64_MAX), 0, "the lower number first");
    is_uint(spread_next(s, UINT64_MAX), 1, "then the other");
    is_uint(spread_next(s, 1), SPREAD_NONE, "then they are full");
    spread_destroy(s);
    uint64_t given[3] = {0};
    is_int(spread_create(three, 3, 8, 1, &s), 0, "some have extents already");
    for (int i = 0; i < 8; i++)
        given[spread_next(s, 1)]++;
    is_uint(given[0], 0, "who has most is given none");
    is_uint(given[1], 5, "who has none is given most");
    is_uint(given[2], 3, "so that these two are even");
    spread_destroy(s);
    spread_destroy(NULL);
}

int main(void)
{
    test_random();
    test_edges();
    return done_testing();
}
