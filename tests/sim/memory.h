/* Counts the memory of each node's server. More than the design allows is a finding at once. */
#ifndef TESTS_SIM_MEMORY_H
#define TESTS_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

void memory_begin(uint32_t node); /* a new server, which has none */
/* spare: bytes of buffers that its store caches for the next reads. */
bool memory_is_idle(uint32_t node, uint64_t spare);
void memory_check_idle(uint32_t node, uint64_t spare);
void memory_check_ended(uint32_t node);

#endif
