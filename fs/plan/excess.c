/* A tree of minima and maxima. */
#include "fs/plan/excess.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static const struct excess nobody = {INT64_MIN, INT64_MAX, INT64_MAX, INT64_MAX};

static uint32_t leaves_for(uint32_t n)
{
    uint32_t leaves = 1;
    while (leaves < n)
        leaves *= 2;
    return leaves;
}

int excess_init(struct excesses *excesses, uint32_t most)
{
    *excesses = (struct excesses){.node = malloc(2 * (size_t)leaves_for(most) * sizeof *excesses->node)};
    return excesses->node ? 0 : -ENOMEM;
}

void excess_fini(struct excesses *excesses)
{
    int saved = errno;
    free(excesses->node);
    *excesses = (struct excesses){0};
    errno = saved;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void join_place(struct excesses *excesses, uint32_t place)
{
    const struct excess *a = &excesses->node[2 * place], *b = a + 1;
    excesses->node[place] = (struct excess){
        .most = a->most > b->most ? a->most : b->most,
        .least = lesser(a->least, b->least),
        .cheapest = lesser(a->cheapest, b->cheapest),
        .rest = lesser(a->rest, b->rest),
    };
}

void excess_begin(struct excesses *excesses, uint32_t n)
{
    excesses->leaves = leaves_for(n);
    for (uint32_t i = n; i < excesses->leaves; i++)
        excesses->node[excesses->leaves + i] = nobody;
}

void excess_set(struct excesses *excesses, uint32_t rank, const struct excess *excess)
{
    excesses->node[excesses->leaves + rank] = *excess;
}

void excess_done(struct excesses *excesses)
{
    for (uint32_t place = excesses->leaves; --place > 0;)
        join_place(excesses, place);
}

void excess_change(struct excesses *excesses, uint32_t rank, const struct excess *excess)
{
    uint32_t place = excesses->leaves + rank;
    excesses->node[place] = *excess;
    while (place /= 2)
        join_place(excesses, place);
}

uint32_t excess_highest(const struct excesses *excesses)
{
    uint32_t place = 1;
    while (place < excesses->leaves)
        place = 2 * place + (excesses->node[2 * place].most < excesses->node[place].most);
    return place - excesses->leaves;
}

/* The lowest rank below a place. */
static uint32_t first_below(const struct excesses *excesses, uint32_t place)
{
    return (place << (__builtin_clz(place) - __builtin_clz(excesses->leaves))) - excesses->leaves;
}

/* Can a rank below this place be wanted, and come before the best one so far? */
static bool is_worth(const struct excesses *excesses, uint32_t place, const struct excess_wanted *w, int64_t best,
                     uint32_t found)
{
    const struct excess *l = &excesses->node[place];
    return (l->least < best || (l->least == best && first_below(excesses, place) < found)) && l->most >= w->after &&
           (l->cheapest < w->cost || l->rest < w->rest);
}

static bool is_behind(const struct excess *l, uint32_t rank, const struct excess_wanted *w)
{
    return l->least > w->after || w->after_rank == EXCESS_NONE || rank > w->after_rank;
}

/* Depth first, the child with the lesser excess before the other one. */
uint32_t excess_lowest(const struct excesses *excesses, const struct excess_wanted *wanted)
{
    enum { DEPTH = 64 };
    uint32_t stack[DEPTH] = {1}, n = 1, found = EXCESS_NONE;
    int64_t best = INT64_MAX;
    while (n > 0) {
        uint32_t place = stack[--n];
        if (!is_worth(excesses, place, wanted, best, found))
            continue;
        if (place < excesses->leaves) {
            uint32_t near = 2 * place + (excesses->node[2 * place + 1].least < excesses->node[2 * place].least);
            stack[n++] = near ^ 1;
            stack[n++] = near;
        } else if (is_behind(&excesses->node[place], place - excesses->leaves, wanted)) {
            best = excesses->node[place].least;
            found = place - excesses->leaves;
        }
    }
    return found;
}
