/* The simulation: the plan's own orders and balancing, without lists. */
#include "cli/lab/imbalance.h"

#include "fs/base/cleanup.h"
#include "fs/plan/balance.h"
#include "fs/plan/order.h"

#include <errno.h>
#include <string.h>

struct simulation {
    uint32_t nodes, batch, samples, steps;
    uint32_t *order, *count, *target;
    double *percent;                           /* per step */
    double transfers, transfers_least, excess; /* sums over the steps; excess: of the fullest node, in samples */
    struct balance balance;
};

/* Each node with a surplus gives at least once, each with a deficit takes at least once. Without balancing, all would
 * wait for the fullest node. */
static void count_step(struct simulation *s)
{
    uint32_t givers = 0, takers = 0, most = 0;
    for (uint32_t v = 0; v < s->nodes; v++) {
        givers += s->count[v] > s->batch;
        takers += s->count[v] < s->batch;
        most = s->count[v] > most ? s->count[v] : most;
    }
    s->transfers += s->balance.transfers;
    s->transfers_least += givers > takers ? givers : takers;
    s->excess += most - s->batch;
}

static double simulation_step(struct simulation *s, const uint32_t *batch, uint32_t n)
{
    memset(s->count, 0, (s->nodes + 1) * sizeof *s->count);
    for (uint32_t i = 0; i < n; i++)
        s->count[(uint64_t)batch[i] * s->nodes / s->samples]++;
    balance_run(&s->balance, s->count, s->target);
    count_step(s);
    return 100.0 * (double)s->balance.moved / n;
}

static void simulation_run(struct simulation *s)
{
    uint32_t n = s->nodes * s->batch, each = s->samples / n;
    for (uint32_t v = 0; v < s->nodes; v++)
        s->target[v] = s->batch;
    for (uint32_t i = 0; i < s->steps; i++) {
        if (i % each == 0)
            order_seeded(s->order, s->samples, i / each, NULL);
        s->percent[i] = simulation_step(s, s->order + (size_t)(i % each) * n, n);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolated between the two nearest values, as for most box plots. */
static double quantile(const double *sorted, uint32_t n, double share)
{
    double at = share * (n - 1);
    uint32_t below = (uint32_t)at;
    return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]) : sorted[below];
}

static void simulation_summarise(struct simulation *s, struct imbalance *result)
{
    uint32_t n = s->steps;
    double sum = 0;
    qsort(s->percent, n, sizeof *s->percent, by_value);
    for (uint32_t i = 0; i < n; i++)
        sum += s->percent[i];
    *result = (struct imbalance){
        .median = quantile(s->percent, n, 0.5),
        .q1 = quantile(s->percent, n, 0.25),
        .q3 = quantile(s->percent, n, 0.75),
        .min = s->percent[0],
        .max = s->percent[n - 1],
        .mean = sum / n,
        .transfers = s->transfers / n,
        .transfers_least = s->transfers_least / n,
        .lost = 100 * s->excess / s->batch / n,
    };
}

int imbalance_simulate(uint32_t nodes, uint32_t batch, uint32_t samples, uint32_t steps, struct imbalance *result)
{
    if ((uint64_t)nodes * batch > samples)
        return -ERANGE;
    struct simulation s = {.nodes = nodes, .batch = batch, .samples = samples, .steps = steps};
    CLEANUP_FREE uint32_t *order = s.order = malloc(samples * sizeof *order);
    CLEANUP_FREE uint32_t *count = s.count = calloc(nodes + 1, sizeof *count);
    CLEANUP_FREE uint32_t *target = s.target = calloc(nodes, sizeof *target);
    CLEANUP_FREE double *percent = s.percent = malloc(steps * sizeof *percent);
    bool ready = order && count && target && percent && balance_init(&s.balance, nodes) == 0;
    if (ready) {
        simulation_run(&s);
        simulation_summarise(&s, result);
    }
    balance_fini(&s.balance);
    return ready ? 0 : -ENOMEM;
}
