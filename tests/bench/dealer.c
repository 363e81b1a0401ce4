/* How fast a plan is made, and in how much memory: for `make bench`.
 *
 *   dealer [-w | -c WINDOW] SAMPLES NODES RANKS BATCH TURNS
 *
 * An epoch by locality over samples that are spread evenly: the order is drawn, then all ranks' lists are made. Prints
 * the nanoseconds of one core a sample of the order alone, of the plan alone, and of both (medians of the turns), how
 * long both took by the clock, and the most memory that was in use beyond order, reply and owners, in bytes per sample;
 * with -w the lists of the last turn instead. With -c each plan is then made again with swaps between ranks: costs have
 * a log-normal distribution, and ranks cost the same in windows of WINDOW steps. That adds the nanoseconds per sample
 * that the swaps take (the median of the turns), their number, and how many more samples move. */
#include "fs/plan/order.h"
#include "fs/plan/epoch-plan.h"
#include "fs/plan/swaps.h"
#include "tests/bench/median.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { TURNS_MOST = 1000 };

static void *need(void *p)
{
    if (!p) {
        fputs("dealer: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* Touched, so that it is in use now and not only when it is first written to. */
static void *touched(size_t n)
{
    return memset(need(malloc(n + 1)), 1, n + 1);
}

static uint64_t most_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static void run(const struct plan_input *input, uint32_t *lists, struct plan_summary *summary)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan *plan;
    if (plan_create(input, NULL, &plan, &why) || plan_run(plan, lists, NULL, summary)) {
        fprintf(stderr, "dealer: %s\n", why.length ? why.data : "cannot plan");
        exit(1);
    }
    plan_destroy(plan);
}

static uint64_t cost_of(void *user, uint32_t sample)
{
    const uint32_t *cost = user;
    return cost[sample];
}

/* Lengths in tokens: log-normal around 665, sigma 0.9, at most 8,192. */
static uint32_t *make_costs(uint32_t samples)
{
    uint32_t *cost = touched(samples * sizeof *cost);
    for (uint32_t i = 0; i < samples; i++) {
        double u = (drand48() + 1e-12), angle = 2 * M_PI * drand48();
        cost[i] = (uint32_t)fmin(8192, 1 + 665 * exp(0.9 * sqrt(-2 * log(u)) * cos(angle)));
    }
    return cost;
}

/* Nanoseconds of the same plan with swaps. */
static double swap(const struct plan_input *input, uint32_t *lists, struct plan_summary *summary)
{
    struct plan_input with = *input;
    double began = worked(CLOCK_PROCESS_CPUTIME_ID);
    with.cost = cost_of;
    run(&with, lists, summary);
    return worked(CLOCK_PROCESS_CPUTIME_ID) - began;
}

int main(int argc, char **argv)
{
    bool write = argc > 1 && strcmp(argv[1], "-w") == 0, costs = argc > 2 && strcmp(argv[1], "-c") == 0;
    static double order_took[TURNS_MOST], plan_took[TURNS_MOST], both[TURNS_MOST], wall[TURNS_MOST];
    static double swaps_took[TURNS_MOST];
    uint32_t window = costs ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    argc -= write + 2 * costs;
    argv += write + 2 * costs;
    if (argc != 6 || window == 0) {
        fputs("usage: dealer [-w | -c WINDOW] SAMPLES NODES RANKS BATCH TURNS\n", stderr);
        return 2;
    }
    uint32_t samples = (uint32_t)strtoul(argv[1], NULL, 10), nodes = (uint32_t)strtoul(argv[2], NULL, 10);
    uint32_t ranks = (uint32_t)strtoul(argv[3], NULL, 10), batch = (uint32_t)strtoul(argv[4], NULL, 10);
    int turns = atoi(argv[5]);
    if (samples == 0 || nodes == 0 || ranks == 0 || turns < 1 || turns > TURNS_MOST)
        return 2;
    uint16_t *owner = touched(samples * sizeof *owner);
    uint32_t *order = touched(samples * sizeof *order);
    uint32_t *lists = touched(((size_t)samples + ranks) * sizeof *lists);
    for (uint32_t i = 0; i < samples; i++)
        owner[i] = (uint16_t)((uint64_t)i * nodes / samples);
    struct plan_input input = {.order = order,
                               .count = samples,
                               .ranks = ranks,
                               .batch = batch,
                               .echo = {ECHO_ONE},
                               .owners = {.nodes = nodes, .groups = 1, .of = {owner}},
                               .user = costs ? make_costs(samples) : NULL,
                               .balance = BALANCE_DEFAULT,
                               .window = window};
    struct plan_summary summary, swapped;
    uint64_t before = most_memory();
    for (int turn = 0; turn < turns; turn++) {
        double began = worked(CLOCK_PROCESS_CPUTIME_ID), clock = worked(CLOCK_MONOTONIC);
        order_seeded(order, samples, (uint64_t)turn, NULL);
        double drawn = worked(CLOCK_PROCESS_CPUTIME_ID);
        run(&input, lists, &summary);
        double done = worked(CLOCK_PROCESS_CPUTIME_ID);
        order_took[turn] = (drawn - began) / samples;
        plan_took[turn] = (done - drawn) / samples;
        both[turn] = (done - began) / samples;
        wall[turn] = (worked(CLOCK_MONOTONIC) - clock) / samples;
        if (costs)
            swaps_took[turn] = swap(&input, lists, &swapped) / samples - plan_took[turn];
    }
    if (write)
        return fwrite(lists, sizeof *lists, summary.samples, stdout) == summary.samples ? 0 : 1;
    printf("order=%.2f plan=%.2f both=%.2f wall=%.2f memory=%.2f moved=%" PRIu64 " steps=%" PRIu64,
           median(order_took, turns), median(plan_took, turns), median(both, turns), median(wall, turns),
           (double)(most_memory() - before) / samples, summary.moved, summary.steps);
    if (costs)
        printf(" cost=%.2f swaps=%" PRIu64 " swaps_moved=%" PRId64, median(swaps_took, turns), swapped.costs.swaps,
               swapped.costs.moved);
    putchar('\n');
    return 0;
}
