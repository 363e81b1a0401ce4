/* Swaps by themselves: how far from the best deal they end, what they refuse, and that they can be interrupted. That
 * they follow fs/plan/COST tests/fs/plan/model.py knows. */
#include "fs/plan/batches.h"
#include "fs/plan/excess.h"
#include "fs/plan/random.h"
#include "fs/plan/swaps.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MOST = 4, BATCH_MOST = 6, SAMPLES_MOST = RANKS_MOST * BATCH_MOST };

static uint64_t cost_of(void *user, uint32_t sample)
{
    const uint64_t *cost = user;
    return cost[sample];
}

/* Samples 0…n-1, dealt in a row to ranks on one node. Returns the slowest rank's cost after the swaps. */
static uint64_t swapped_slowest(const uint64_t *cost, uint32_t ranks, uint32_t batch)
{
    static const uint16_t owner[SAMPLES_MOST];
    const struct owners owners = {.nodes = 1, .groups = 1, .of = {owner}};
    uint32_t row[SAMPLES_MOST], n = ranks * batch;
    struct placement placement;
    struct swap_tally tally;
    struct swaps *swaps;
    const uint16_t *unused;
    const struct swap_terms terms = {.placement = &placement,
                                     .owners = &owners,
                                     .balance = BALANCE_ONE,
                                     .window = 1,
                                     .longest = n,
                                     .cost = cost_of,
                                     .user = (void *)(uintptr_t)cost};
    uint64_t slowest = 0;
    for (uint32_t i = 0; i < n; i++)
        row[i] = i;
    if (placement_init(&placement, 1, ranks, NULL) || swaps_create(&terms, &swaps))
        bail_out("out of memory");
    swaps_begin(swaps);
    swaps_add(swaps, row, row, n);
    if (swaps_run(swaps, NULL, &tally))
        bail_out("swaps_run");
    const uint32_t *list = swaps_step(swaps, 0, &n, &unused);
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t load = 0;
        for (uint32_t i = 0; i < batch; i++)
            load += cost[list[r * batch + i]];
        slowest = load > slowest ? load : slowest;
    }
    swaps_destroy(swaps);
    placement_fini(&placement);
    return slowest;
}

/* All deals of samples, the most expensive first. What cannot be better than the best one is not followed, and the
 * search ends where nothing can be better. */
struct search {
    uint32_t ranks, batch;
    const uint64_t *cost; /* descending */
    uint64_t load[RANKS_MOST], best, bound;
    uint32_t count[RANKS_MOST];
};

static void search_deals(struct search *s, uint32_t sample)
{
    if (sample == s->ranks * s->batch) {
        uint64_t slowest = 0;
        for (uint32_t r = 0; r < s->ranks; r++)
            slowest = s->load[r] > slowest ? s->load[r] : slowest;
        s->best = slowest;
        return;
    }
    for (uint32_t r = 0; r < s->ranks && s->best > s->bound; r++) {
        if (s->count[r] == s->batch || s->load[r] + s->cost[sample] >= s->best)
            continue;
        s->load[r] += s->cost[sample];
        s->count[r]++;
        search_deals(s, sample + 1);
        s->load[r] -= s->cost[sample];
        if (--s->count[r] == 0)
            break; /* an empty rank is like any other */
    }
}

static int by_cost(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* No deal has a slowest rank that costs less. `known`: what one deal has. */
static uint64_t least_slowest(const uint64_t *cost, uint32_t ranks, uint32_t batch, uint64_t known)
{
    uint64_t sorted[SAMPLES_MOST], total = 0, n = ranks * batch, largest;
    memcpy(sorted, cost, n * sizeof *cost);
    qsort(sorted, n, sizeof *sorted, by_cost);
    for (uint32_t i = 0; i < n; i++)
        total += sorted[i];
    largest = sorted[0];
    for (uint64_t i = n - batch + 1; i < n; i++)
        largest += sorted[i];
    struct search s = {
        .ranks = ranks, .batch = batch, .cost = sorted, .best = known, .bound = (total + ranks - 1) / ranks};
    s.bound = largest > s.bound ? largest : s.bound;
    search_deals(&s, 0);
    return s.best;
}

/* Few expensive samples among many cheap ones: the cube of an even draw. */
static uint64_t draw_cost(uint64_t seed, uint64_t at)
{
    uint64_t r = random_at(seed, RANDOM_DRAWS, at) % 20 + 1;
    return r * r * r / 8 + 1;
}

/* What the swaps leave by the best deal, of many global batches, in millionths: the mean and the worst. */
static void test_distance(uint32_t ranks, uint32_t batch, uint64_t mean_most, uint64_t worst_most)
{
    enum { ROUNDS = 60 };
    uint64_t cost[SAMPLES_MOST], sum = 0, worst = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < ranks * batch; i++)
            cost[i] = draw_cost(round * 100 + ranks * 10 + batch, i);
        uint64_t ours = swapped_slowest(cost, ranks, batch), best = least_slowest(cost, ranks, batch, ours);
        uint64_t ratio = ours * BALANCE_ONE / best;
        sum += ratio;
        worst = ratio > worst ? ratio : worst;
    }
    ok(sum / ROUNDS <= mean_most && worst <= worst_most,
       "%" PRIu32 " ranks, batch %" PRIu32 ": by the best of all deals %" PRIu64 " on average, at most %" PRIu64, ranks,
       batch, sum / ROUNDS, worst);
}

static bool interrupt(void *user)
{
    unsigned *asked = user;
    return ++*asked > 0;
}

/* What costs of two ranks, with a sample each or several, come to: swaps_run's answer. */
static int run_costs(const uint64_t *cost, uint32_t n, uint32_t window, const struct plan_stop *stop,
                     struct swap_tally *tally)
{
    static uint16_t owner[1 << 18];
    static uint32_t row[1 << 18];
    const struct owners owners = {.nodes = 1, .groups = 1, .of = {owner}};
    struct placement placement;
    struct swaps *swaps;
    const struct swap_terms terms = {.placement = &placement,
                                     .owners = &owners,
                                     .balance = BALANCE_ONE,
                                     .window = window,
                                     .longest = n,
                                     .cost = cost_of,
                                     .user = (void *)(uintptr_t)cost};
    for (uint32_t i = 0; i < n; i++)
        row[i] = i;
    if (placement_init(&placement, 1, 2, NULL) || swaps_create(&terms, &swaps))
        bail_out("out of memory");
    swaps_begin(swaps);
    for (uint32_t step = 0; step < window; step++)
        swaps_add(swaps, row, row, n);
    int error = swaps_run(swaps, stop, tally);
    swaps_destroy(swaps);
    placement_fini(&placement);
    return error;
}

static void test_refusals(void)
{
    const uint64_t most = SWAPS_COST_MOST, half[] = {most / 2, most / 2}, more[] = {most / 2, most / 2 + 1};
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX}, one[] = {most, 0}, nothing[] = {0, 0, 0, 0};
    struct swap_tally tally;
    is_int(run_costs(half, 2, 1, NULL, &tally), 0, "a window may cost 2^52");
    is_uint(tally.after, BALANCE_ONE, "and its ranks the same");
    is_int(run_costs(more, 2, 1, NULL, &tally), -ERANGE, "but not more");
    is_int(run_costs(half, 2, 2, NULL, &tally), -ERANGE, "nor two steps together");
    is_int(run_costs(huge, 2, 3, NULL, &tally), -ERANGE, "what costs 2^64 does not wrap around");
    is_int(run_costs(one, 2, 1, NULL, &tally), 0, "one sample has all of it");
    is_uint(tally.after, 2 * BALANCE_ONE, "its rank costs twice the mean");
    is_int(run_costs(nothing, 4, 1, NULL, &tally), 0, "nothing costs anything");
    is_uint(tally.after, BALANCE_ONE, "which is the same for all");
    is_uint(tally.swaps, 0, "without a swap");
}

static void test_interrupted(void)
{
    enum { N = 1 << 18 };
    static uint64_t cost[N];
    struct swap_tally tally;
    unsigned asked = 0;
    const struct plan_stop stop = {interrupt, &asked};
    for (uint32_t i = 0; i < N; i++)
        cost[i] = i;
    is_int(run_costs(cost, N, 1, &stop, &tally), -EINTR, "a long search asks whether anybody still wants it");
    is_uint(asked, 1, "and ends at once");
    is_int(run_costs(cost, N, 1, NULL, &tally), 0, "else it goes on");
    is_uint(tally.swaps, 8, "but not beyond four swaps per rank");
    ok(tally.after < tally.before, "of which each helps: %" PRIu32 ", before %" PRIu32, tally.after, tally.before);
}

/* The first rank by excess, then number, that has a sample cheaper than this and comes behind another one. */
static uint32_t naive_lowest(const struct excesses *e, int64_t cheaper, uint32_t behind)
{
    uint32_t found = EXCESS_NONE;
    for (uint32_t r = 0; r < e->ranks; r++) {
        int64_t above = e->rank[r].above;
        if (e->rank[r].cheapest >= cheaper)
            continue;
        if (behind != EXCESS_NONE && (above < e->rank[behind].above || (above == e->rank[behind].above && r <= behind)))
            continue;
        if (found == EXCESS_NONE || above < e->rank[found].above)
            found = r;
    }
    return found;
}

static uint32_t naive_highest(const struct excesses *e)
{
    uint32_t found = 0;
    for (uint32_t r = 1; r < e->ranks; r++)
        if (e->rank[r].above > e->rank[found].above)
            found = r;
    return found;
}

/* Excesses of few values, so that many are equal; some ranks have no samples. */
static struct excess draw_excess(uint64_t seed, uint64_t *at, uint32_t values)
{
    uint64_t a = random_at(seed, RANDOM_DRAWS, ++*at), b = random_at(seed, RANDOM_DRAWS, ++*at);
    return (struct excess){.above = (int64_t)(a % values) - values / 2,
                           .cheapest = b % 16 == 0 ? INT64_MAX : (int64_t)(b / 16 % values)};
}

/* While ranks change, the tree finds what a look at all of them finds. */
static void test_excess(uint32_t ranks, uint32_t values)
{
    enum { ROUNDS = 300 };
    struct excesses e;
    uint64_t at = 0, wrong = 0;
    if (excess_init(&e, ranks))
        bail_out("out of memory");
    excess_begin(&e, ranks);
    for (uint32_t r = 0; r < ranks; r++)
        e.rank[r] = draw_excess(ranks, &at, values);
    excess_done(&e);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t cheaper = round % 10 ? (int64_t)(random_at(1, RANDOM_DRAWS, round) % (values + 2)) : INT64_MAX;
        uint32_t low = excess_lowest(&e, cheaper), changed = (uint32_t)(random_at(2, RANDOM_DRAWS, round) % ranks);
        wrong += excess_highest(&e) != naive_highest(&e);
        wrong += low != naive_lowest(&e, cheaper, EXCESS_NONE);
        if (low != EXCESS_NONE)
            excess_queue(&e, cheaper, low);
        for (uint32_t next; low != EXCESS_NONE; low = next) {
            next = excess_next(&e);
            wrong += next != naive_lowest(&e, cheaper, low);
        }
        excess_change(&e, changed, draw_excess(ranks, &at, values));
    }
    is_uint(wrong, 0, "a tree of %" PRIu32 " ranks with %" PRIu32 " values finds all", ranks, values);
    excess_fini(&e);
}

/* What is allocated is foreseen, or a few blocks' heads more. */
static void test_memory(uint32_t ranks, uint32_t longest, uint32_t window)
{
    enum { HEADS = 1024 };
    static const uint16_t owner[1];
    const struct owners owners = {.nodes = 1, .groups = 1, .of = {owner}};
    struct placement placement;
    struct swaps *swaps;
    if (placement_init(&placement, 1, ranks, NULL))
        bail_out("out of memory");
    const struct swap_terms terms = {.placement = &placement, .owners = &owners, .window = window, .longest = longest};
    struct mallinfo2 before = mallinfo2();
    if (swaps_create(&terms, &swaps))
        bail_out("out of memory");
    struct mallinfo2 after = mallinfo2();
    uint64_t took = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    uint64_t most = swaps_memory(ranks, longest, window) + HEADS + 16 * sysconf(_SC_PAGESIZE);
    if (took == 0)
        skip(1, "this allocator does not count");
    else
        ok(took <= most, "%" PRIu32 " ranks, %" PRIu32 " samples, window %" PRIu32 ": %" PRIu64 " of %" PRIu64 " bytes",
           ranks, longest, window, took, most);
    swaps_destroy(swaps);
    placement_fini(&placement);
}

int main(void)
{
    test_refusals();
    test_interrupted();
    test_excess(1, 3);
    test_excess(8, 1000);
    test_excess(9, 3);
    test_excess(128, 1000000);
    test_excess(129, 4);
    test_excess(300, 1000000);
    test_memory(1025, 1025, 1);
    test_memory(65537, 65537, 2);
    test_memory(3, 100000, 8);
    for (uint32_t ranks = 2; ranks <= RANKS_MOST; ranks++)
        for (uint32_t batch = 1; batch <= BATCH_MOST; batch++)
            test_distance(ranks, batch, 1012000, 1200000);
    return done_testing();
}
