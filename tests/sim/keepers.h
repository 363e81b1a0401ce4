#ifndef TESTS_SIM_KEEPERS_H
#define TESTS_SIM_KEEPERS_H

void keepers_begin(void); /* a thread for each node, and one for its world */

#endif
