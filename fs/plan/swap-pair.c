/* The best pair of samples that two ranks can swap: two pointers over their samples, sorted by cost. */
#include "fs/plan/swap-state.h"

bool swaps_away(const struct swaps *s, const struct swap_item *item, uint32_t node)
{
    const struct swap_terms *t = &s->terms;
    const struct owners *o = t->owners;
    bool owned = item->owner < o->nodes;
    if (o->groups == 1 && !t->first)
        return owned && item->owner != node;
    if (t->first && t->first[item->sample] == node)
        return false;
    for (uint32_t g = 0; g < o->groups; g++) {
        uint32_t v = o->of[g][item->sample];
        if (v == node)
            return false;
        owned |= v < o->nodes;
    }
    return owned;
}

/* The samples of a segment, by what it changes when they go from node `own` to node `other`. Of those with the same
 * cost the first one with the least weight is enough. */
static void fill_lanes(struct swaps *s, const struct swap_item *item, uint32_t n, uint32_t own, uint32_t other,
                       struct swap_lane *lane)
{
    for (int c = 0; c < CHANGES; c++)
        lane[c].count = 0;
    for (uint32_t i = 0; i < n; i++) {
        int change = own == other ? 0 : swaps_away(s, &item[i], other) - swaps_away(s, &item[i], own);
        struct swap_lane *l = &lane[change + 1];
        struct swap_candidate *last = &l->candidate[l->count - (l->count > 0)];
        struct swap_candidate one = {(int64_t)item[i].cost, change * (int64_t)item[i].bytes, item[i].position, i};
        if (l->count == 0 || last->cost != one.cost)
            l->candidate[l->count++] = one;
        else if (one.weight < last->weight)
            *last = one;
    }
}

static bool is_better(const struct swap_choice *a, const struct swap_choice *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if (a->weight != b->weight)
        return a->weight < b->weight;
    return a->high != b->high ? a->high < b->high : a->low < b->low;
}

static void consider(const struct swap_candidate *a, const struct swap_candidate *b, int64_t difference, uint32_t step,
                     struct swap_choice *best)
{
    int64_t off = 2 * (a->cost - b->cost) - difference;
    struct swap_choice one = {.distance = off < 0 ? -off : off,
                              .weight = a->weight + b->weight,
                              .high = a->position,
                              .low = b->position,
                              .step = step,
                              .high_item = a->item,
                              .low_item = b->item};
    if (is_better(&one, best))
        *best = one;
}

/* For each of the one lane the two of the other between which half the difference lies. */
static void search_lanes(const struct swap_lane *high, const struct swap_lane *low, int64_t difference, uint32_t step,
                         struct swap_choice *best)
{
    uint32_t b = 0;
    for (uint32_t a = 0; a < high->count && low->count > 0; a++) {
        const struct swap_candidate *one = &high->candidate[a];
        while (b < low->count && 2 * (one->cost - low->candidate[b].cost) > difference)
            b++;
        if (b < low->count)
            consider(one, &low->candidate[b], difference, step, best);
        if (b > 0)
            consider(one, &low->candidate[b - 1], difference, step, best);
    }
}

bool swaps_find_pair(struct swaps *s, uint32_t high, uint32_t low, int64_t difference, int64_t most, bool owned,
                     struct swap_choice *chosen)
{
    enum { SUMS = 2 * CHANGES - 1 };
    uint32_t own = owned ? s->terms.placement->node[high] : 0, other = owned ? s->terms.placement->node[low] : 0;
    struct swap_choice best[SUMS];
    int found = SUMS;
    for (int sum = 0; sum < SUMS; sum++)
        best[sum] = (struct swap_choice){.distance = most + 1, .weight = INT64_MIN};
    for (uint32_t step = 0; step < s->steps && most >= 0; step++) {
        uint32_t n, m;
        const struct swap_item *from = swaps_segment(s, step, high, &n), *to = swaps_segment(s, step, low, &m);
        fill_lanes(s, from, n, own, other, s->high);
        fill_lanes(s, to, m, other, own, s->low);
        for (int sum = 0; sum < SUMS && sum <= found; sum++) {
            for (int a = sum < CHANGES ? 0 : sum - CHANGES + 1; a < CHANGES && a <= sum; a++)
                search_lanes(&s->high[a], &s->low[sum - a], difference, step, &best[sum]);
            if (best[sum].distance <= most)
                found = sum < found ? sum : found;
        }
    }
    if (found == SUMS)
        return false;
    *chosen = best[found];
    return true;
}
