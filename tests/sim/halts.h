#ifndef TESTS_SIM_HALTS_H
#define TESTS_SIM_HALTS_H

#include "tests/sim/node.h"

/* Cause the fault when this process of the node, NULL for none, is at some stage of a turn; not at all if that is not
 * soon. */
void halts_await(struct sim_node *n, struct sim_process *process, void (*fault)(struct sim_node *));

#endif
