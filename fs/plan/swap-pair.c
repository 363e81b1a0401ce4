/* Finds the best pair of samples that two ranks can swap: two pointers over their samples, sorted by cost. */
#include "fs/plan/swaps-inside.h"

/* Is it owned, but not by this node? */
static bool is_away(const struct swaps *s, const struct swap_item *item, uint32_t node)
{
    const struct swap_terms *t = &s->terms;
    const struct owners *o = t->owners;
    uint32_t sample = s->list[item->slot];
    bool owned = false;
    if (t->first && t->first[sample] == node)
        return false;
    for (uint32_t g = 0; g < o->groups; g++) {
        uint32_t v = o->of[g][sample];
        if (v == node)
            return false;
        owned |= v < o->nodes;
    }
    return owned;
}

int swaps_change(const struct swaps *s, const struct swap_item *item, uint32_t own, uint32_t other)
{
    uint32_t owner = s->owner[item->slot];
    if (own == other)
        return 0;
    if (s->terms.owners->groups > 1 || s->terms.first)
        return is_away(s, item, other) - is_away(s, item, own);
    return owner < s->terms.owners->nodes ? (owner == own) - (owner == other) : 0;
}

int64_t swaps_weight(struct swaps *s, const struct swap_item *item, uint32_t own, uint32_t other)
{
    uint64_t *bytes = &s->bytes[item->slot];
    int change = s->terms.bytes ? swaps_change(s, item, own, other) : 0;
    if (change && *bytes == NOT_KNOWN)
        *bytes = s->terms.bytes(s->terms.user, s->list[item->slot]);
    return change ? change * (int64_t)*bytes : 0;
}

/* Sort the samples of one rank in the current step into lanes, by what changes when they go to the node of the other
 * rank. Of samples with equal cost, the first one with the least weight is enough. */
static void fill_lanes(const struct pair_search *p, bool high)
{
    struct swaps *s = p->swaps;
    struct swap_lane *lane = high ? s->high : s->low;
    uint32_t n, own = high ? p->own : p->other, other = high ? p->other : p->own;
    const struct swap_item *item = swaps_segment(s, p->step, high ? p->high : p->low, &n);
    for (int c = 0; c < CHANGES; c++)
        lane[c].count = 0;
    for (uint32_t i = 0; i < n; i++) {
        int change = swaps_change(s, &item[i], own, other);
        struct swap_lane *l = &lane[change + 1];
        struct swap_candidate *last = &l->candidate[l->count - (l->count > 0)];
        struct swap_candidate one = {(int64_t)item[i].cost, item[i].position, i};
        if (l->count == 0 || last->cost != one.cost)
            l->candidate[l->count++] = one;
        else if (change && swaps_weight(s, &item[i], own, other) < swaps_weight(s, &item[last->item], own, other))
            *last = one;
    }
}

/* Bytes that a pair adds to those away from their owners. */
static int64_t pair_weight(const struct pair_search *p, const struct swap_choice *c)
{
    uint32_t n, m;
    const struct swap_item *from = swaps_segment(p->swaps, c->step, p->high, &n);
    const struct swap_item *to = swaps_segment(p->swaps, c->step, p->low, &m);
    return swaps_weight(p->swaps, &from[c->high_item], p->own, p->other) +
           swaps_weight(p->swaps, &to[c->low_item], p->other, p->own);
}

/* At equal distance, is `a` the better pair? */
static bool wins_tie(const struct pair_search *p, const struct swap_choice *a, const struct swap_choice *b)
{
    int64_t x = pair_weight(p, a), y = pair_weight(p, b);
    if (x != y)
        return x < y;
    return a->high != b->high ? a->high < b->high : a->low < b->low;
}

static void consider(const struct pair_search *p, const struct swap_candidate *a, const struct swap_candidate *b,
                     struct swap_choice *best)
{
    int64_t off = 2 * (a->cost - b->cost) - p->difference, distance = off < 0 ? -off : off;
    if (distance > p->most || distance > best->distance)
        return;
    struct swap_choice one = {.distance = distance,
                              .high = a->position,
                              .low = b->position,
                              .step = p->step,
                              .high_item = a->item,
                              .low_item = b->item};
    if (distance < best->distance || wins_tie(p, &one, best))
        *best = one;
}

/* For each sample of one lane, try the two of the other lane on both sides of half the difference. */
static void search_lanes(const struct pair_search *p, const struct swap_lane *high, const struct swap_lane *low,
                         struct swap_choice *best)
{
    uint32_t b = 0;
    for (uint32_t a = 0; a < high->count && low->count > 0; a++) {
        const struct swap_candidate *one = &high->candidate[a];
        while (b < low->count && 2 * (one->cost - low->candidate[b].cost) > p->difference)
            b++;
        if (b < low->count)
            consider(p, one, &low->candidate[b], best);
        if (b > 0)
            consider(p, one, &low->candidate[b - 1], best);
    }
}

bool swaps_find_pair(struct pair_search *p, struct swap_choice *chosen)
{
    enum { SUMS = 2 * CHANGES - 1 };
    const struct swaps *s = p->swaps;
    struct swap_choice best[SUMS];
    int found = SUMS;
    for (int sum = 0; sum < SUMS; sum++)
        best[sum] = (struct swap_choice){.distance = INT64_MAX};
    for (p->step = 0; p->step < s->steps && p->most >= 0; p->step++) {
        fill_lanes(p, true);
        fill_lanes(p, false);
        for (int sum = 0; sum < SUMS && sum <= found; sum++) {
            for (int a = sum < CHANGES ? 0 : sum - CHANGES + 1; a < CHANGES && a <= sum; a++)
                search_lanes(p, &s->high[a], &s->low[sum - a], &best[sum]);
            if (best[sum].distance <= p->most)
                found = sum < found ? sum : found;
        }
    }
    if (found == SUMS)
        return false;
    *chosen = best[found];
    return true;
}
