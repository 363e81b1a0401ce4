/* The names of the states of a world, as people and scripts see them. */
#include "fs/world/peers.h"

const char *const world_state_names[] = {
    [WORLD_ALONE] = "alone", [WORLD_JOINED] = "joined", [WORLD_DEGRADED] = "degraded"};
