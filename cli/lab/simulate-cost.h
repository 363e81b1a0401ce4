/* `dealfs simulate cost`. */
#ifndef CLI_LAB_SIMULATE_COST_H
#define CLI_LAB_SIMULATE_COST_H

int simulate_cost(int argc, char **argv); /* an exit status */

#endif
