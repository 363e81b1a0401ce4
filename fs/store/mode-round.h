/* A thread that looks at each directory of the source, in rounds, and notes modes that were reduced (modes.h): files
 * below such a directory may be cached, and then no read asks the source. At most 100 looks per second are made in a
 * world, all nodes together. If the source hangs, only this thread waits. */
#ifndef FS_STORE_MODE_ROUND_H
#define FS_STORE_MODE_ROUND_H

#include "fs/store/modes.h"

struct mode_round_config {
    const struct catalog *catalog;
    int root; /* of the source, borrowed */
    struct modes *modes;
    unsigned (*nodes)(void *user); /* of the world, for the rate; asked before each round */
    void *user;
};
struct mode_round;

int mode_round_start(const struct mode_round_config *config, struct mode_round **round);
void mode_round_stop(struct mode_round *round); /* NULL is allowed */
/* How long a round takes, if the source answers at once. */
uint64_t mode_round_seconds(const struct mode_round *round);

#endif
