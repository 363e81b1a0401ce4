/* How uneven a batch falls on the nodes of a world: the simulation behind the paper's Figure 6. */
#ifndef CLI_LAB_IMBALANCE_H
#define CLI_LAB_IMBALANCE_H

#include <stdint.h>

struct imbalance {
    double median, q1, q3, min, max; /* percent of a global batch that must move to another node, over the steps */
    double mean;
    double transfers;       /* between nodes in a step, on average, as they are planned */
    double transfers_least; /* what no planning could do with fewer, on average */
    double lost;            /* percent of a step's time that it would take longer without balancing, on average */
};

/* Samples are spread evenly over the nodes; global batches of batch · nodes are cut from shuffled epochs, as many as
 * steps say. 0, -ERANGE: a global batch is larger than the dataset; -ENOMEM. */
int imbalance_simulate(uint32_t nodes, uint32_t batch, uint32_t samples, uint32_t steps, struct imbalance *result);

#endif
