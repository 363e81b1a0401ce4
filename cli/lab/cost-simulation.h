/* How much longer than the mean the slowest rank takes, where samples differ in cost: as plans deal them, with and
 * without `cost=`. */
#ifndef CLI_LAB_COST_SIMULATION_H
#define CLI_LAB_COST_SIMULATION_H

#include <stdint.h>

enum cost_distribution { COST_LOGNORMAL, COST_EXPONENTIAL, COST_UNIFORM };
#define COST_DISTRIBUTIONS "lognormal|exponential|uniform"

struct cost_world {
    uint32_t ranks, batch, window;
    uint32_t samples, steps;
    uint32_t balance; /* in millionths */
    enum cost_distribution distribution;
    const uint32_t *cost; /* by sample; NULL: drawn */
};

struct cost_dealt {
    double ratio; /* the slowest rank by the mean, on average of the windows */
    double bound; /* the larger of 1.05 and the most expensive sample by the mean of a rank, likewise */
    double moved; /* percent of samples */
};

struct cost_result {
    struct cost_dealt regular, locality, balanced; /* DistributedSampler's lists; by locality; the same after swaps */
};

/* A node per rank. 0; -EDOM: the window's global batches are larger than the dataset; -ERANGE: a window costs more than
 * plans can balance; -ENOMEM. */
int cost_simulate(const struct cost_world *world, struct cost_result *result);

#endif
