/* The swaps of a window. A rank's samples of a step, its segment, are sorted by cost when the rank first takes part in
 * a swap; two pointers over two sorted segments then find the best pair.
 *
 *   item[]     all samples of the window, step after step, rank after rank: segments
 *   excesses   by rank: its cost above its limit */
#include "fs/plan/swaps.h"
#include "fs/plan/swap-state.h"

#include "fs/base/cleanup.h"
#include "fs/plan/batches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t share_most(uint32_t ranks, uint64_t longest)
{
    return (uint32_t)(longest / ranks + 1);
}

uint64_t swaps_memory(uint32_t ranks, uint64_t longest, uint32_t window)
{
    enum { A_RANK = 64 };
    return window * longest * (sizeof(struct swap_item) + sizeof(uint32_t) + sizeof(uint16_t)) +
           (uint64_t)ranks * A_RANK +
           share_most(ranks, longest) * (sizeof(struct swap_item) + 2 * CHANGES * sizeof(struct swap_candidate));
}

void swaps_destroy(struct swaps *s)
{
    int saved = errno;
    if (!s)
        return;
    excess_fini(&s->excesses);
    for (int c = 0; c < CHANGES; c++) {
        free(s->high[c].candidate);
        free(s->low[c].candidate);
    }
    free(s->length);
    free(s->base);
    free(s->item);
    free(s->spare);
    free(s->list);
    free(s->owner);
    free(s->rank);
    free(s);
    errno = saved;
}

static bool lanes_init(struct swaps *s, uint32_t share)
{
    for (int c = 0; c < CHANGES; c++) {
        s->high[c].candidate = malloc(share * sizeof *s->high[c].candidate);
        s->low[c].candidate = malloc(share * sizeof *s->low[c].candidate);
        if (!s->high[c].candidate || !s->low[c].candidate)
            return false;
    }
    return true;
}

int swaps_create(const struct swap_terms *terms, struct swaps **swaps)
{
    struct swaps *s = calloc(1, sizeof *s);
    uint32_t ranks = terms->placement->ranks, share = share_most(ranks, terms->longest);
    size_t most = (size_t)terms->longest * terms->window + 1;
    if (!s)
        return -ENOMEM;
    s->terms = *terms;
    s->length = calloc(terms->window, sizeof *s->length);
    s->base = calloc(terms->window, sizeof *s->base);
    s->item = malloc(most * sizeof *s->item);
    s->list = malloc(most * sizeof *s->list);
    s->owner = malloc(most * sizeof *s->owner);
    s->spare = malloc(share * sizeof *s->spare);
    s->rank = calloc(ranks, sizeof *s->rank);
    if (!s->length || !s->base || !s->item || !s->list || !s->owner || !s->spare || !s->rank || !lanes_init(s, share) ||
        excess_init(&s->excesses, ranks)) {
        swaps_destroy(s);
        return -ENOMEM;
    }
    *swaps = s;
    return 0;
}

/* --- a window's samples --- */

void swaps_begin(struct swaps *s)
{
    s->steps = 0;
    for (uint32_t r = 0; r < s->terms.placement->ranks; r++)
        s->rank[r] = (struct swap_rank){.least = UINT64_MAX};
}

/* None costs more than all of a window may. */
static uint64_t cost_of(const struct swaps *s, uint32_t sample)
{
    uint64_t cost = s->terms.cost(s->terms.user, sample);
    return cost <= SWAPS_COST_MOST ? cost : SWAPS_COST_MOST + 1;
}

void swaps_add(struct swaps *s, const uint32_t *batch, const uint32_t *dealt, uint32_t n)
{
    uint32_t step = s->steps++, ranks = s->terms.placement->ranks;
    uint32_t slot = step ? s->base[step - 1] + s->length[step - 1] : 0, base = slot;
    s->base[step] = base;
    s->length[step] = n;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t share = batches_share(n, ranks, r);
        struct swap_rank *rank = &s->rank[r];
        for (uint32_t end = slot + share; slot < end; slot++, dealt++) {
            uint32_t sample = batch[*dealt];
            uint64_t cost = cost_of(s, sample);
            s->item[slot] = (struct swap_item){.cost = cost,
                                               .sample = sample,
                                               .position = base + *dealt,
                                               .slot = slot,
                                               .owner = s->terms.owners->of[0][sample]};
            rank->cost += rank->cost > SWAPS_COST_MOST ? 0 : cost;
            rank->least = cost < rank->least ? cost : rank->least;
            rank->most = cost > rank->most ? cost : rank->most;
        }
        rank->samples += share;
    }
}

static bool is_below(const struct swap_item *a, const struct swap_item *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->position < b->position);
}

/* By cost, then position: two sorted halves are merged. */
static void sort_items(struct swap_item *item, uint32_t n, struct swap_item *spare)
{
    enum { FEW = 12 };
    if (n <= FEW) {
        for (uint32_t i = 1; i < n; i++) {
            struct swap_item one = item[i];
            uint32_t at = i;
            for (; at > 0 && is_below(&one, &item[at - 1]); at--)
                item[at] = item[at - 1];
            item[at] = one;
        }
        return;
    }
    uint32_t half = n / 2, a = 0, b = half, to = 0;
    sort_items(item, half, spare);
    sort_items(item + half, n - half, spare);
    memcpy(spare, item, half * sizeof *item);
    while (a < half && b < n)
        item[to++] = is_below(&item[b], &spare[a]) ? item[b++] : spare[a++];
    memcpy(item + to, spare + a, (half - a) * sizeof *item);
}

static void sort_rank(struct swaps *s, uint32_t rank)
{
    const struct swap_terms *t = &s->terms;
    if (s->rank[rank].sorted)
        return;
    s->rank[rank].sorted = true;
    for (uint32_t step = 0; step < s->steps; step++) {
        uint32_t n;
        struct swap_item *item = swaps_segment(s, step, rank, &n);
        for (uint32_t i = 0; t->bytes && i < n; i++)
            item[i].bytes = t->bytes(t->user, item[i].sample);
        sort_items(item, n, s->spare);
    }
}

/* --- the swaps --- */

/* An item of a sorted segment becomes another, which is put where it belongs. */
static void replace_item(struct swap_item *item, uint32_t n, uint32_t at, struct swap_item with)
{
    for (; at > 0 && is_below(&with, &item[at - 1]); at--)
        item[at] = item[at - 1];
    for (; at + 1 < n && is_below(&item[at + 1], &with); at++)
        item[at] = item[at + 1];
    item[at] = with;
}

static void count_move(struct swaps *s, const struct swap_item *item, uint32_t from, uint32_t to,
                       struct swap_tally *tally)
{
    const uint16_t *node = s->terms.placement->node;
    int change = swaps_away(s, item, node[to]) - swaps_away(s, item, node[from]);
    tally->moved += change;
    tally->moved_bytes += change * (int64_t)item->bytes;
}

/* Of a sorted rank. */
static void note_extremes(struct swaps *s, uint32_t rank)
{
    struct swap_rank *r = &s->rank[rank];
    r->least = UINT64_MAX;
    r->most = 0;
    for (uint32_t step = 0; step < s->steps; step++) {
        uint32_t n;
        const struct swap_item *item = swaps_segment(s, step, rank, &n);
        if (n == 0)
            continue;
        r->least = item[0].cost < r->least ? item[0].cost : r->least;
        r->most = item[n - 1].cost > r->most ? item[n - 1].cost : r->most;
    }
}

static void swap_pair(struct swaps *s, uint32_t high, uint32_t low, const struct swap_choice *c,
                      struct swap_tally *tally)
{
    uint32_t n, m, slot;
    struct swap_item *from = swaps_segment(s, c->step, high, &n), *to = swaps_segment(s, c->step, low, &m);
    struct swap_item a = from[c->high_item], b = to[c->low_item];
    count_move(s, &a, high, low, tally);
    count_move(s, &b, low, high, tally);
    tally->swaps++;
    slot = a.slot;
    a.slot = b.slot;
    b.slot = slot;
    replace_item(from, n, c->high_item, b);
    replace_item(to, m, c->low_item, a);
    s->rank[high].cost -= a.cost - b.cost;
    s->rank[low].cost += a.cost - b.cost;
    note_extremes(s, high);
    note_extremes(s, low);
}

static uint32_t rank_at(const struct swaps *s, uint32_t member)
{
    return s->member ? s->member[member] : member;
}

static struct excess rank_excess(const struct swaps *s, uint32_t member)
{
    const struct swap_rank *r = &s->rank[rank_at(s, member)];
    int64_t excess = (int64_t)r->cost - r->limit;
    if (r->samples == 0)
        return (struct excess){excess, excess, INT64_MAX, INT64_MAX};
    return (struct excess){excess, excess, (int64_t)r->least, excess - (int64_t)r->most};
}

/* Of a sorted rank: the cost of its second most expensive sample; -1: it has only one. */
static int64_t second_cost(const struct swaps *s, uint32_t rank)
{
    uint64_t most = s->rank[rank].most, second = 0;
    uint32_t as_much = 0;
    for (uint32_t step = 0; step < s->steps; step++) {
        uint32_t n;
        const struct swap_item *item = swaps_segment(s, step, rank, &n);
        for (uint32_t i = n; i-- > 0 && as_much < 2;) {
            if (item[i].cost == most) {
                as_much++;
                continue;
            }
            second = item[i].cost > second ? item[i].cost : second;
            break;
        }
    }
    return as_much > 1 ? (int64_t)most : s->rank[rank].samples > 1 ? (int64_t)second : -1;
}

/* A swap between these two members. */
static bool swap_between(struct swaps *s, uint32_t high, uint32_t low, struct swap_tally *tally)
{
    uint32_t h = rank_at(s, high), l = rank_at(s, low);
    int64_t above = excess_of(&s->excesses, high)->most, below = excess_of(&s->excesses, low)->most;
    struct swap_choice chosen;
    sort_rank(s, l);
    if (!swaps_find_pair(s, h, l, above - below, -below - above, true, &chosen) &&
        !swaps_find_pair(s, h, l, above - below, above - below - 1, false, &chosen))
        return false;
    swap_pair(s, h, l, &chosen, tally);
    struct excess excess = rank_excess(s, high);
    excess_change(&s->excesses, high, &excess);
    excess = rank_excess(s, low);
    excess_change(&s->excesses, low, &excess);
    return true;
}

/* The most expensive rank with the cheapest one that gives a pair. 0: there is none; -EINTR.
 *
 * Ranks that cannot give one are passed over. A sample a of h, b of l and 0 < d < D mean that b is cheaper than a, and
 * that l without b is cheaper than h without a. So where a is the most expensive one of h, l without its most expensive
 * one is cheaper than that; else l has a sample that is cheaper than the second one of h. */
static int swap_once(struct swaps *s, const struct plan_stop *stop, uint64_t *work, struct swap_tally *tally)
{
    uint32_t high = excess_highest(&s->excesses), h = rank_at(s, high), low;
    int64_t excess = excess_of(&s->excesses, high)->most;
    sort_rank(s, h);
    struct excess_wanted wanted = {second_cost(s, h), excess - (int64_t)s->rank[h].most, INT64_MIN, EXCESS_NONE};
    while ((low = excess_lowest(&s->excesses, &wanted)) != EXCESS_NONE) {
        int64_t below = excess_of(&s->excesses, low)->least;
        if (excess - below <= 1)
            return 0;
        *work += s->rank[h].samples + s->rank[rank_at(s, low)].samples;
        if (*work >= PLAN_SLICE) {
            *work = 0;
            if (plan_stopped(stop))
                return -EINTR;
        }
        if (swap_between(s, high, low, tally))
            return 1;
        wanted.after = below;
        wanted.after_rank = low;
    }
    return 0;
}

/* What the set's ranks may cost. */
static void set_limits(struct swaps *s, uint32_t members)
{
    enum { MILLION = 1000000 };
    uint64_t total = 0, samples = 0, of = 0;
    int64_t limit = 0;
    for (uint32_t i = 0; i < members; i++) {
        total += s->rank[rank_at(s, i)].cost;
        samples += s->rank[rank_at(s, i)].samples;
    }
    for (uint32_t i = 0; i < members; i++) {
        struct swap_rank *r = &s->rank[rank_at(s, i)];
        if (r->samples != of) {
            unsigned __int128 share = (unsigned __int128)total * s->terms.balance * r->samples / samples / MILLION;
            limit = share < INT64_MAX / 4 ? (int64_t)share : INT64_MAX / 4;
            of = r->samples;
        }
        r->limit = limit;
    }
}

static int swap_set(struct swaps *s, const uint32_t *member, uint32_t members, const struct plan_stop *stop,
                    struct swap_tally *tally)
{
    enum { A_RANK = 4 };
    uint64_t left = (uint64_t)members * A_RANK * s->steps, work = 0;
    int swapped = members > 1;
    s->member = member;
    set_limits(s, members);
    excess_begin(&s->excesses, members);
    for (uint32_t i = 0; i < members; i++) {
        const struct excess excess = rank_excess(s, i);
        excess_set(&s->excesses, i, &excess);
    }
    excess_done(&s->excesses);
    for (; swapped > 0 && left > 0 && excess_of(&s->excesses, excess_highest(&s->excesses))->most > 0; left--)
        swapped = swap_once(s, stop, &work, tally);
    return swapped < 0 ? swapped : 0;
}

/* The largest cost of a rank, each by the mean times its own number of samples; in millionths. */
static uint32_t slowest(const struct swaps *s)
{
    uint32_t ranks = s->terms.placement->ranks;
    uint64_t total = 0, samples = 0, worst = BALANCE_ONE;
    uint64_t most[2] = {0}, of[2] = {s->rank[0].samples, 0}; /* ranks have one of two numbers of samples */
    for (uint32_t r = 0; r < ranks; r++) {
        bool other = s->rank[r].samples != of[0];
        of[other] = s->rank[r].samples;
        most[other] = s->rank[r].cost > most[other] ? s->rank[r].cost : most[other];
        total += s->rank[r].cost;
        samples += s->rank[r].samples;
    }
    for (int i = 0; i < 2 && total > 0; i++) {
        unsigned __int128 mean = (unsigned __int128)total * of[i];
        uint64_t ratio = of[i] ? (uint64_t)((unsigned __int128)most[i] * BALANCE_ONE * samples / mean) : 0;
        worst = ratio > worst ? ratio : worst;
    }
    return worst < UINT32_MAX ? (uint32_t)worst : UINT32_MAX;
}

int swaps_run(struct swaps *s, const struct plan_stop *stop, struct swap_tally *tally)
{
    const struct placement *p = s->terms.placement;
    uint64_t total = 0;
    int error = 0;
    *tally = (struct swap_tally){0};
    for (uint32_t r = 0; r < p->ranks; r++) {
        total += s->rank[r].cost;
        if (total > SWAPS_COST_MOST)
            return -ERANGE;
    }
    tally->before = slowest(s);
    if (!s->terms.within_nodes)
        error = swap_set(s, NULL, p->ranks, stop, tally);
    for (uint32_t v = 0; s->terms.within_nodes && v < p->nodes && !error; v++)
        error = swap_set(s, p->rank + p->first[v], p->first[v + 1] - p->first[v], stop, tally);
    tally->after = slowest(s);
    uint32_t end = s->steps ? s->base[s->steps - 1] + s->length[s->steps - 1] : 0;
    for (uint32_t i = 0; i < end; i++) {
        s->list[s->item[i].slot] = s->item[i].sample;
        s->owner[s->item[i].slot] = s->item[i].owner;
    }
    return error;
}

const uint32_t *swaps_step(const struct swaps *s, uint32_t step, uint32_t *n, const uint16_t **owner)
{
    *n = s->length[step];
    *owner = s->owner + s->base[step];
    return s->list + s->base[step];
}
