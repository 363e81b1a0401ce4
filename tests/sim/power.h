/* The contents of a node's disk after a loss of power. */
#ifndef TESTS_SIM_POWER_H
#define TESTS_SIM_POWER_H

#include "tests/sim/node.h"

void power_begin(const char *directory); /* for old versions of files, on the file system of all nodes' directories */
/* The node's processes are dead. Its state directory and SSD tier become what a disk may still have of them. Fails
 * where the node's saved world is then damaged. */
void power_fail(struct sim_node *n);

#endif
