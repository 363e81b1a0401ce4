/* With `verify_once`, a value is verified when it is put into the tier, and when a process reads it for the first
 * time. After that only the scrubber does so, a thread that verifies all cached values, in rounds. A damaged value is
 * dropped, so that the next read loads it again. */
#ifndef FS_STORE_SCRUB_H
#define FS_STORE_SCRUB_H

#include "fs/store/stock.h"

struct scrub {
    struct stock *stock;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool stop; /* guarded by lock */
    _Atomic uint64_t rate, bytes, rounds;
    uint64_t due; /* when the next value may be read; only used by the thread */
};

int scrub_start(struct scrub *scrub, struct stock *stock);
void scrub_stop(struct scrub *scrub); /* also if it was never started */

#endif
