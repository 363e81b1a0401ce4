/* A tree of minima and maxima over blocks of ranks, and a heap. */
#include "fs/plan/excess.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK = 8, LAST = EXCESS_CLASSES - 1, FEW = 128 /* ranks: with fewer, classes cost more than they save */ };

static const struct excess nobody = {INT64_MIN, INT64_MAX};

static uint32_t blocks_for(uint32_t n)
{
    uint32_t blocks = 1;
    while (blocks * BLOCK < n)
        blocks *= 2;
    return blocks;
}

uint64_t excess_memory(uint32_t most)
{
    uint64_t blocks = blocks_for(most);
    return blocks * (BLOCK * sizeof(struct excess) + 2 * sizeof(struct excess_place)) + most * sizeof(uint32_t);
}

int excess_init(struct excesses *excesses, uint32_t most)
{
    size_t blocks = blocks_for(most);
    *excesses = (struct excesses){
        .rank = malloc(blocks * BLOCK * sizeof *excesses->rank),
        .place = malloc(2 * blocks * sizeof *excesses->place),
        .heap = malloc(most * sizeof *excesses->heap),
    };
    if (excesses->rank && excesses->place && excesses->heap)
        return 0;
    excess_fini(excesses);
    return -ENOMEM;
}

void excess_fini(struct excesses *excesses)
{
    free(excesses->rank);
    free(excesses->place);
    free(excesses->heap);
    *excesses = (struct excesses){0};
}

/* --- the tree --- */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void look_at_block(struct excesses *excesses, uint32_t block)
{
    const struct excess *rank = excesses->rank + (size_t)block * BLOCK;
    struct excess_place p = {.most = INT64_MIN};
    for (int c = excesses->first; c <= LAST; c++)
        p.least[c] = INT64_MAX;
    for (int i = 0; i < BLOCK; i++) {
        p.most = greater(p.most, rank[i].above);
        for (int c = LAST; c >= excesses->first && rank[i].cheapest < excesses->bound[c]; c--)
            p.least[c] = lesser(p.least[c], rank[i].above);
    }
    excesses->place[excesses->blocks + block] = p;
}

static void join_places(struct excesses *excesses, uint32_t place)
{
    const struct excess_place *a = &excesses->place[2 * place], *b = a + 1;
    struct excess_place *p = &excesses->place[place];
    p->most = greater(a->most, b->most);
    for (int c = excesses->first; c <= LAST; c++)
        p->least[c] = lesser(a->least[c], b->least[c]);
}

void excess_begin(struct excesses *excesses, uint32_t n)
{
    excesses->ranks = n;
    excesses->blocks = blocks_for(n);
    excesses->first = n > FEW ? 0 : LAST;
    for (uint32_t i = n; i < excesses->blocks * BLOCK; i++)
        excesses->rank[i] = nobody;
}

/* Choose the classes' bounds from a sample of the ranks: half of the ranks, a quarter, and so on. */
static void choose_bounds(struct excesses *excesses)
{
    enum { SOME = 64 };
    int64_t some[SOME];
    uint32_t step = (excesses->ranks + SOME - 1) / SOME, n = 0;
    for (uint32_t r = 0; r < excesses->ranks; r += step, n++) {
        int64_t one = excesses->rank[r].cheapest;
        uint32_t at = n;
        for (; at > 0 && some[at - 1] > one; at--)
            some[at] = some[at - 1];
        some[at] = one;
    }
    for (int c = 0; c < LAST; c++)
        excesses->bound[c] = some[n >> (LAST - c)];
    excesses->bound[LAST] = INT64_MAX;
}

void excess_done(struct excesses *excesses)
{
    choose_bounds(excesses);
    for (uint32_t block = 0; block < excesses->blocks; block++)
        look_at_block(excesses, block);
    for (uint32_t place = excesses->blocks; --place > 0;)
        join_places(excesses, place);
}

void excess_change(struct excesses *excesses, uint32_t rank, struct excess excess)
{
    excesses->rank[rank] = excess;
    look_at_block(excesses, rank / BLOCK);
    for (uint32_t place = excesses->blocks + rank / BLOCK; place /= 2;)
        join_places(excesses, place);
}

uint32_t excess_highest(const struct excesses *excesses)
{
    uint32_t place = 1, found;
    while (place < excesses->blocks)
        place = 2 * place + (excesses->place[2 * place].most < excesses->place[place].most);
    found = (place - excesses->blocks) * BLOCK;
    while (excesses->rank[found].above < excesses->place[place].most)
        found++;
    return found;
}

/* Is this rank before the other one, by excess, then rank? */
static bool is_before(const struct excesses *excesses, uint32_t a, uint32_t b)
{
    int64_t x = excesses->rank[a].above, y = excesses->rank[b].above;
    return x != y ? x < y : a < b;
}

static uint32_t lowest_of_block(const struct excesses *excesses, uint32_t block, int64_t cheaper, uint32_t found)
{
    for (uint32_t r = block * BLOCK; r < (block + 1) * BLOCK; r++)
        if (excesses->rank[r].cheapest < cheaper && (found == EXCESS_NONE || is_before(excesses, r, found)))
            found = r;
    return found;
}

/* Can a rank below this place be before the best one so far? */
static bool is_worth(const struct excesses *excesses, uint32_t place, int class, uint32_t found)
{
    int64_t least = excesses->place[place].least[class];
    uint32_t block = (place << (__builtin_clz(place) - __builtin_clz(excesses->blocks))) - excesses->blocks;
    if (found == EXCESS_NONE)
        return least < INT64_MAX;
    return least < excesses->rank[found].above || (least == excesses->rank[found].above && block * BLOCK < found);
}

/* Depth-first search, the child with the smaller excess first. */
uint32_t excess_lowest(const struct excesses *excesses, int64_t cheaper)
{
    enum { DEPTH = 64 };
    uint32_t stack[DEPTH] = {1}, n = 1, found = EXCESS_NONE;
    const struct excess_place *p = excesses->place;
    int c = excesses->first;
    while (excesses->bound[c] < cheaper)
        c++;
    while (n > 0) {
        uint32_t place = stack[--n];
        if (!is_worth(excesses, place, c, found))
            continue;
        if (place >= excesses->blocks) {
            found = lowest_of_block(excesses, place - excesses->blocks, cheaper, found);
            continue;
        }
        uint32_t near = 2 * place + (p[2 * place + 1].least[c] < p[2 * place].least[c]);
        stack[n++] = near ^ 1;
        stack[n++] = near;
    }
    return found;
}

/* --- the heap --- */

static void sink(struct excesses *excesses, uint32_t at)
{
    uint32_t *heap = excesses->heap, n = excesses->waiting, rank = heap[at], below;
    for (; (below = 2 * at + 1) < n; at = below) {
        below += below + 1 < n && is_before(excesses, heap[below + 1], heap[below]);
        if (!is_before(excesses, heap[below], rank))
            break;
        heap[at] = heap[below];
    }
    heap[at] = rank;
}

void excess_queue(struct excesses *excesses, int64_t cheaper, uint32_t without)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < excesses->ranks; r++)
        if (r != without && excesses->rank[r].cheapest < cheaper)
            excesses->heap[n++] = r;
    excesses->waiting = n;
    for (uint32_t at = n / 2; at-- > 0;)
        sink(excesses, at);
}

uint32_t excess_next(struct excesses *excesses)
{
    uint32_t *heap = excesses->heap, first;
    if (excesses->waiting == 0)
        return EXCESS_NONE;
    first = heap[0];
    heap[0] = heap[--excesses->waiting];
    sink(excesses, 0);
    return first;
}
