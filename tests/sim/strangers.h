/* Joins that are refused: one of the nodes does not fit into the world. */
#ifndef TESTS_SIM_STRANGERS_H
#define TESTS_SIM_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_world;

/* One of its nodes, and what is wrong with it. */
void strangers_choose(const struct net_world *world, uint32_t nodes);
bool strangers_are_in(const struct net_world *world);
/* Changes what the calling courier, of this rank, tells the others, if it is the stranger's.
 * 0; -ENOENT: it has no mount. */
int strangers_speak(uint32_t rank, void *bytes, size_t n);

#endif
