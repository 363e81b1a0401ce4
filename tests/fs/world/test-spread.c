/* Spreading, against the plain rule: look at all nodes for each extent. */
#include "fs/world/spread.h"

#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

__extension__ typedef unsigned __int128 wide;

enum { NODES = 40 };

struct plain {
    uint64_t room[NODES], dealt[NODES], typical;
    uint32_t nodes;
};

static uint32_t plain_next(struct plain *p, uint64_t cost)
{
    uint32_t best = SPREAD_NONE;
    for (uint32_t i = 0; i < p->nodes; i++) {
        if (p->room[i] == 0 || p->room[i] - p->dealt[i] < cost)
            continue;
        if (best == SPREAD_NONE ||
            (wide)(p->dealt[i] + p->typical) * p->room[best] < (wide)(p->dealt[best] + p->typical) * p->room[i])
            best = i;
    }
    if (best != SPREAD_NONE)
        p->dealt[best] += cost;
    return best;
}

/* Until nothing fits any more, and a little on. */
static bool same_as_plain(uint64_t *random, uint64_t most_room, uint64_t most_cost)
{
    struct plain p = {.nodes = (uint32_t)random_below(random, NODES) + 1, .typical = most_cost / 2};
    bool alike = random_below(random, 2);
    for (uint32_t i = 0; i < p.nodes; i++)
        p.room[i] = alike && i ? p.room[0] : random_below(random, 4) ? random_below(random, most_room) : 0;
    struct spread *s;
    if (spread_create(p.room, p.nodes, p.typical, &s))
        bail_out("no memory");
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
        wrong += !same_as_plain(&random, (uint64_t)1 << 50, (uint64_t)1 << 45);
    is_uint(wrong, 0, "also with large numbers");
}

static void test_edges(void)
{
    static const uint64_t none[3] = {0, 0, 0}, all[2] = {UINT64_MAX, UINT64_MAX};
    struct spread *s;
    is_int(spread_create(none, 3, 1, &s), 0, "nodes without room");
    is_uint(spread_next(s, 1), SPREAD_NONE, "have nothing");
    spread_destroy(s);
    is_int(spread_create(none, 0, 1, &s), 0, "no nodes");
    is_uint(spread_next(s, 1), SPREAD_NONE, "have nothing either");
    spread_destroy(s);
    is_int(spread_create(all, 2, UINT64_MAX, &s), 0, "more room than there can be");
    is_uint(spread_next(s, SPREAD_MOST), 0, "the lower number first");
    is_uint(spread_next(s, SPREAD_MOST), 1, "then the other");
    is_uint(spread_next(s, 1), SPREAD_NONE, "then they are full");
    spread_destroy(s);
    spread_destroy(NULL);
}

int main(void)
{
    test_random();
    test_edges();
    return done_testing();
}
