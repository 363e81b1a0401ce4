/* Swaps within a window. A rank's samples in a step are its segment. It is sorted by cost when the rank first takes
 * part in a swap; two pointers over two sorted segments then find the best pair.
 *
 *   item[]     all samples of the window, step after step, rank after rank: segments
 *   excesses   per rank: its cost above its limit */
#include "fs/plan/swaps.h"
#include "fs/plan/swaps-inside.h"

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
    enum { A_SAMPLE = sizeof(struct swap_item) + sizeof(uint32_t) + sizeof(uint16_t) + sizeof(uint64_t) };
    enum { A_SHARE = sizeof(struct swap_item) + 2 * CHANGES * sizeof(struct swap_candidate) };
    return (window * A_SAMPLE + sizeof(uint64_t)) * longest + (uint64_t)window * sizeof(struct swap_step) +
           ranks * sizeof(struct swap_rank) + excess_memory(ranks) + (uint64_t)share_most(ranks, longest) * A_SHARE;
}

void swaps_destroy(struct swaps *s)
{
    if (!s)
        return;
    excess_fini(&s->excesses);
    for (int c = 0; c < CHANGES; c++) {
        free(s->high[c].candidate);
        free(s->low[c].candidate);
    }
    free(s->step);
    free(s->item);
    free(s->spare);
    free(s->list);
    free(s->owner);
    free(s->bytes);
    free(s->cost);
    free(s->rank);
    free(s);
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
    s->step = calloc(terms->window, sizeof *s->step);
    s->item = malloc(most * sizeof *s->item);
    s->list = malloc(most * sizeof *s->list);
    s->owner = malloc(most * sizeof *s->owner);
    s->bytes = malloc(most * sizeof *s->bytes);
    s->cost = malloc((terms->longest + (size_t)1) * sizeof *s->cost);
    s->spare = malloc(share * sizeof *s->spare);
    s->rank = calloc(ranks, sizeof *s->rank);
    if (!s->step || !s->item || !s->list || !s->owner || !s->bytes || !s->cost || !s->spare || !s->rank ||
        !lanes_init(s, share) || excess_init(&s->excesses, ranks)) {
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

/* Limited to the maximum of a whole window. */
static uint64_t cost_of(const struct swaps *s, uint32_t sample)
{
    uint64_t cost = s->terms.cost(s->terms.user, sample);
    return cost <= SWAPS_COST_MOST ? cost : SWAPS_COST_MOST + 1;
}

void swaps_add(struct swaps *s, const uint32_t *batch, const uint32_t *dealt, uint32_t n)
{
    uint32_t step = s->steps++, ranks = s->terms.placement->ranks;
    uint32_t slot = step ? s->step[step - 1].base + s->step[step - 1].length : 0, base = slot;
    s->step[step] = (struct swap_step){n, base, n / ranks, n % ranks};
    memset(s->bytes + base, 0xff, n * sizeof *s->bytes); /* fills with NOT_KNOWN */
    /* random memory access: in a loop of its own, so that many reads are in flight */
    for (uint32_t i = 0; i < n; i++)
        s->cost[i] = cost_of(s, batch[i]);
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t share = batches_share(n, ranks, r);
        struct swap_rank *rank = &s->rank[r];
        for (uint32_t end = slot + share; slot < end; slot++, dealt++) {
            uint64_t cost = s->cost[*dealt];
            s->item[slot] = (struct swap_item){.cost = cost, .position = base + *dealt, .slot = slot};
            s->list[slot] = batch[*dealt];
            s->owner[slot] = s->terms.owners->of[0][batch[*dealt]];
            rank->cost += rank->cost > SWAPS_COST_MOST ? 0 : cost;
            rank->least = cost < rank->least ? cost : rank->least;
            rank->most = cost > rank->most ? cost : rank->most;
        }
        rank->samples += share;
    }
}

static void sort_rank(struct swaps *s, uint32_t rank)
{
    if (s->rank[rank].sorted)
        return;
    s->rank[rank].sorted = true;
    for (uint32_t step = 0; step < s->steps; step++) {
        uint32_t n;
        struct swap_item *item = swaps_segment(s, step, rank, &n);
        swap_items_sort(item, n, s->spare);
    }
}

/* --- the swaps --- */

/* Replace an item of a sorted segment, keeping it sorted. */
static void replace_item(struct swap_item *item, uint32_t n, uint32_t at, struct swap_item with)
{
    for (; at > 0 && swap_item_is_below(&with, &item[at - 1]); at--)
        item[at] = item[at - 1];
    for (; at + 1 < n && swap_item_is_below(&item[at + 1], &with); at++)
        item[at] = item[at + 1];
    item[at] = with;
}

static void count_move(struct swaps *s, const struct swap_item *item, uint32_t from, uint32_t to,
                       struct swap_tally *tally)
{
    const uint16_t *node = s->terms.placement->node;
    tally->moved += swaps_change(s, item, node[from], node[to]);
    tally->moved_bytes += swaps_weight(s, item, node[from], node[to]);
}

/* Swap the contents of two slots. */
static void swap_slots(struct swaps *s, uint32_t a, uint32_t b)
{
    uint32_t sample = s->list[a];
    uint16_t owner = s->owner[a];
    uint64_t bytes = s->bytes[a];
    s->list[a] = s->list[b];
    s->owner[a] = s->owner[b];
    s->bytes[a] = s->bytes[b];
    s->list[b] = sample;
    s->owner[b] = owner;
    s->bytes[b] = bytes;
}

/* For a sorted rank. */
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
    swap_slots(s, a.slot, b.slot);
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
    return (struct excess){.above = (int64_t)r->cost - r->limit,
                           .cheapest = r->samples ? (int64_t)r->least : INT64_MAX};
}

/* For a sorted rank: the cost of its second most expensive sample; -1: it has only one. */
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

/* Swap between these two members. */
static bool swap_between(struct swaps *s, uint32_t high, uint32_t low, struct swap_tally *tally)
{
    uint32_t h = rank_at(s, high), l = rank_at(s, low);
    int64_t above = s->excesses.rank[high].above, below = s->excesses.rank[low].above;
    const uint16_t *node = s->terms.placement->node;
    struct pair_search search = {.swaps = s,
                                 .high = h,
                                 .low = l,
                                 .own = node[h],
                                 .other = node[l],
                                 .difference = above - below,
                                 .most = -below - above};
    struct swap_choice chosen;
    sort_rank(s, l);
    if (!swaps_find_pair(&search, &chosen)) {
        search.own = search.other;
        search.most = above - below - 1;
        if (!swaps_find_pair(&search, &chosen))
            return false;
    }
    swap_pair(s, h, l, &chosen, tally);
    excess_change(&s->excesses, high, rank_excess(s, high));
    excess_change(&s->excesses, low, rank_excess(s, low));
    return true;
}

/* Upper bound: a rank that can form a pair with this one, h, has a sample that is cheaper than this.
 *
 * A sample a of h, b of l, and 0 < d < D imply that b is cheaper than a, and that l without b is less above its limit
 * than h without a. If a is not the most expensive sample of h, b is cheaper than the second one of h. If it is, the
 * other samples of l together cost less than those of h plus the difference of the limits. With equally many samples
 * there is no difference, so the cheapest sample of l is again cheaper than the second one of h. */
static int64_t cheaper_than(const struct swaps *s, uint32_t rank)
{
    const struct swap_rank *h = &s->rank[rank];
    int64_t second = second_cost(s, rank), others = (int64_t)(h->cost - h->most) + s->highest_limit - h->limit;
    int64_t each = s->fewest > 1 ? (others + s->fewest - 2) / (s->fewest - 1) : INT64_MAX;
    return s->even || each < second ? second : each;
}

/* Swap once between the most expensive rank and the cheapest one that has a pair. 0: no swap is needed, or
 * possible; -EINTR. */
static int swap_once(struct swaps *s, const struct plan_stop *stop, uint64_t *work, struct swap_tally *tally)
{
    uint32_t high = excess_highest(&s->excesses), h = rank_at(s, high), low;
    int64_t above = s->excesses.rank[high].above, cheaper;
    bool queued = false;
    if (above <= 0)
        return 0;
    sort_rank(s, h);
    cheaper = cheaper_than(s, h);
    for (low = excess_lowest(&s->excesses, cheaper); low != EXCESS_NONE; low = excess_next(&s->excesses)) {
        if (above - s->excesses.rank[low].above <= 1)
            return 0;
        *work += s->rank[h].samples + s->rank[rank_at(s, low)].samples;
        if (*work >= PLAN_SLICE) {
            *work = 0;
            if (plan_stopped(stop))
                return -EINTR;
        }
        if (swap_between(s, high, low, tally))
            return 1;
        if (!queued)
            excess_queue(&s->excesses, cheaper, low);
        queued = true;
    }
    return 0;
}

/* Sets the limits of the set's ranks. */
static void set_limits(struct swaps *s, uint32_t members)
{
    enum { MILLION = 1000000 };
    uint64_t total = 0, samples = 0, of = 0, most = 0;
    int64_t limit = 0;
    s->fewest = INT64_MAX;
    s->highest_limit = 0;
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
            most = of > most ? of : most;
            s->fewest = of && (int64_t)of < s->fewest ? (int64_t)of : s->fewest;
            s->highest_limit = limit > s->highest_limit ? limit : s->highest_limit;
        }
        r->limit = limit;
    }
    s->even = s->fewest == (int64_t)most;
}

static int swap_set(struct swaps *s, const uint32_t *member, uint32_t members, const struct plan_stop *stop,
                    struct swap_tally *tally)
{
    enum { A_RANK = 4 };
    uint64_t left = (uint64_t)members * A_RANK * s->steps, work = 0;
    int swapped = 1;
    if (members < 2)
        return 0;
    s->member = member;
    set_limits(s, members);
    excess_begin(&s->excesses, members);
    for (uint32_t i = 0; i < members; i++)
        s->excesses.rank[i] = rank_excess(s, i);
    excess_done(&s->excesses);
    for (; swapped > 0 && left > 0; left--)
        swapped = swap_once(s, stop, &work, tally);
    return swapped < 0 ? swapped : 0;
}

/* The largest cost of a rank, divided by the mean times its number of samples; in millionths. */
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
    return error;
}

const uint32_t *swaps_step(const struct swaps *s, uint32_t step, uint32_t *n, const uint16_t **owner)
{
    *n = s->step[step].length;
    *owner = s->owner + s->step[step].base;
    return s->list + s->step[step].base;
}
