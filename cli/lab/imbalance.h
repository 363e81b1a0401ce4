/* How unevenly a batch is distributed over the nodes of a world: the simulation of the paper's Figure 6. */
#ifndef CLI_LAB_IMBALANCE_H
#define CLI_LAB_IMBALANCE_H

#include <stdint.h>

struct imbalance {
    double median, q1, q3, min, max; /* percent of a global batch that must move to another node, over the steps */
    double mean;
    double transfers;       /* mean number per step between nodes, as planned */
    double transfers_least; /* mean lower bound for any plan */
    double lost;            /* mean percentage by which a step would take longer without balancing */
};

/* Samples are spread evenly over the nodes; `steps` global batches of batch · nodes samples are cut from shuffled
 * epochs. 0, -ERANGE: a global batch is larger than the dataset; -ENOMEM. */
int imbalance_simulate(uint32_t nodes, uint32_t batch, uint32_t samples, uint32_t steps, struct imbalance *result);

#endif
