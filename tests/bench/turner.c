/* How fast the next layout is computed: for `make bench`.
 *
 *   turner EXTENTS NODES TURNS
 *
 * Files of 64 to 192 KiB. Prints for an exchange of a tenth and for a shuffle the nanoseconds of one core an extent:
 * medians of the turns. */
#include "tests/bench/median.h"
#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

#include <inttypes.h>
#include <stdio.h>

enum { TURNS_MOST = 100 };

static double turn_took(const struct layout *layout, const struct sizes *sizes, struct turn turn)
{
    struct layout *next;
    double began = worked(CLOCK_PROCESS_CPUTIME_ID);
    if (layout_exchange(layout, sizes->extents, &turn, &next))
        bail_out("no memory for a turn");
    double took = worked(CLOCK_PROCESS_CPUTIME_ID) - began;
    layout_close(next);
    return took / (double)extents_count(sizes->extents);
}

static void make_sizes(struct sizes *s, uint32_t extents)
{
    uint64_t *size = malloc(extents * sizeof *size), random = 1;
    if (!size)
        bail_out("no memory for %" PRIu32 " files", extents);
    for (uint32_t i = 0; i < extents; i++)
        size[i] = (64 << 10) + random_below(&random, 128 << 10);
    sizes_begin(s, size, extents);
    free(size);
}

int main(int argc, char **argv)
{
    static double tenth[TURNS_MOST], shuffle[TURNS_MOST];
    struct sizes s;
    struct dealt_world w;
    if (argc != 4) {
        fputs("usage: turner EXTENTS NODES TURNS\n", stderr);
        return 2;
    }
    uint32_t extents = (uint32_t)strtoul(argv[1], NULL, 10), nodes = (uint32_t)strtoul(argv[2], NULL, 10);
    int turns = atoi(argv[3]);
    if (extents == 0 || nodes == 0 || nodes > WORLD_NODES || turns < 1 || turns > TURNS_MOST)
        return 2;
    make_sizes(&s, extents);
    world_begin(&w, &s, 1);
    for (uint32_t i = 0; i < nodes; i++)
        world_add(&w, i, (uint64_t)extents / nodes * (160 << 10));
    struct layout *layout = world_deal(&w);
    for (int i = 0; i < turns; i++) {
        struct turn turn = {.cause = TURN_EXCHANGE, .fraction = TURN_WHOLE / 10, .epoch = (uint64_t)i};
        tenth[i] = turn_took(layout, &s, turn);
        turn = (struct turn){.cause = TURN_SHUFFLE, .fraction = TURN_WHOLE, .seed = (uint64_t)i};
        shuffle[i] = turn_took(layout, &s, turn);
    }
    printf("exchange=%.2f shuffle=%.2f\n", median(tenth, turns), median(shuffle, turns));
    layout_close(layout);
    world_end(&w);
    sizes_end(&s);
    return 0;
}
