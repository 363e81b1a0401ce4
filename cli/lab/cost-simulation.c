/* The plans themselves, of samples whose costs are drawn or given. */
#include "cli/lab/cost-simulation.h"

#include "fs/base/cleanup.h"
#include "fs/plan/epoch-plan.h"
#include "fs/plan/order.h"
#include "fs/plan/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Tokens: log-normal around 665, sigma 0.9, at most 8,192. */
static const double median = 665, sigma = 0.9, most = 8192;

struct cost_run {
    const struct cost_world *world;
    uint32_t *cost, *order, *list;
    uint16_t *owner;
    double *load; /* by rank */
};

/* Above 0, below 1. */
static double draw(uint64_t at)
{
    return ((double)(random_at(1, RANDOM_DRAWS, at) >> 11) + 0.5) / 9007199254740992.0;
}

static uint32_t draw_cost(enum cost_distribution distribution, uint32_t sample)
{
    double u = draw(2 * (uint64_t)sample), v = draw(2 * (uint64_t)sample + 1), mean = 1000;
    switch (distribution) {
    case COST_LOGNORMAL:
        return (uint32_t)fmin(most, 1 + median * exp(sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v)));
    case COST_EXPONENTIAL:
        return (uint32_t)(1 - mean * log(u));
    case COST_UNIFORM:
        break;
    }
    return (uint32_t)(1 + 2 * mean * u);
}

static uint64_t cost_of(void *user, uint32_t sample)
{
    const struct cost_run *s = user;
    return s->cost[sample];
}

/* On average of the windows. */
static double measure(const struct cost_run *s, const struct plan_shape *shape, double *bound)
{
    const struct cost_world *w = s->world;
    double sum = 0, bounds = 0;
    uint64_t windows = shape->full / w->batch / w->window + (w->window == 1);
    for (uint64_t i = 0; i < windows; i++) {
        double total = 0, slowest = 0, largest = 0;
        for (uint32_t r = 0; r < w->ranks; r++) {
            const uint32_t *at = s->list + plan_shape_place(shape, r) + i * w->window * w->batch;
            s->load[r] = 0;
            for (uint32_t k = 0; k < w->window * w->batch; k++) {
                s->load[r] += s->cost[at[k]];
                largest = fmax(largest, s->cost[at[k]]);
            }
            slowest = fmax(slowest, s->load[r]);
            total += s->load[r];
        }
        sum += total > 0 ? slowest * w->ranks / total : 1;
        bounds += total > 0 ? fmax(1.05, largest * w->ranks / total) : 1.05;
    }
    *bound = bounds / (double)windows;
    return sum / (double)windows;
}

static int deal(struct cost_run *s, enum plan_mode mode, bool balanced, struct cost_dealt *dealt)
{
    const struct cost_world *w = s->world;
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_summary summary;
    struct plan *plan;
    const struct plan_input input = {.order = s->order,
                                     .count = w->samples,
                                     .ranks = w->ranks,
                                     .batch = w->batch,
                                     .mode = mode,
                                     .tail = TAIL_DROP,
                                     .echo = {ECHO_ONE, 0, 0},
                                     .samples = w->samples,
                                     .owners = {.nodes = w->ranks, .groups = 1, .of = {s->owner}},
                                     .cost = balanced ? cost_of : NULL,
                                     .user = s,
                                     .balance = w->balance,
                                     .window = w->window,
                                     .chosen = true,
                                     .to = (uint64_t)w->steps * w->window - 1};
    int error = plan_create(&input, NULL, &plan, &why);
    if (error)
        return error;
    CLEANUP_FREE uint32_t *list = s->list = malloc((plan_length_all(plan) + 1) * sizeof *list);
    error = list ? plan_run(plan, list, NULL, &summary) : -ENOMEM;
    if (!error) {
        const struct plan_shape shape = plan_shape(plan);
        dealt->ratio = measure(s, &shape, &dealt->bound);
        dealt->moved = 100.0 * (double)summary.moved / (double)summary.samples;
    }
    plan_destroy(plan);
    return error;
}

int cost_simulate(const struct cost_world *world, struct cost_result *result)
{
    struct cost_world w = *world;
    uint64_t batch = (uint64_t)w.ranks * w.batch, windows = w.samples / batch / w.window;
    if (windows == 0)
        return -EDOM;
    w.steps = w.steps < windows ? w.steps : (uint32_t)windows;
    CLEANUP_FREE uint32_t *cost = malloc(w.samples * sizeof *cost), *order = malloc(w.samples * sizeof *order);
    CLEANUP_FREE uint16_t *owner = malloc(w.samples * sizeof *owner);
    CLEANUP_FREE double *load = malloc(w.ranks * sizeof *load);
    if (!cost || !order || !owner || !load)
        return -ENOMEM;
    for (uint32_t i = 0; i < w.samples; i++) {
        cost[i] = w.cost ? w.cost[i] : draw_cost(w.distribution, i);
        owner[i] = (uint16_t)((uint64_t)i * w.ranks / w.samples);
    }
    order_seeded(order, w.samples, 0, NULL);
    struct cost_run s = {.world = &w, .cost = cost, .order = order, .owner = owner, .load = load};
    int error = deal(&s, PLAN_REGULAR, false, &result->regular);
    if (!error)
        error = deal(&s, PLAN_LOCALITY, false, &result->locality);
    return error ? error : deal(&s, PLAN_LOCALITY, true, &result->balanced);
}
