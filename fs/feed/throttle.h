/* May the feeder request more now? Not while the server has many of its READs in progress. And reads that this node's
 * memory answers are only worth a core that nobody else needs. */
#ifndef FS_FEED_THROTTLE_H
#define FS_FEED_THROTTLE_H

#include "fs/wire/feed.h"

enum { THROTTLE_BURST = 16 /* files between two checks */ };

struct throttle {
    struct feed_served *served;
    uint32_t source_most; /* maximum READs that wait for the source */
    int schedstat;        /* descriptor of /proc/self/schedstat; -1: unavailable */
    uint64_t ran, waited; /* at the last check: nanoseconds on a core, and waiting for one */
    uint64_t reads, ram;  /* of `served`, at the last check */
    bool only_ram;        /* the last READs were answered from this node's memory */
    uint64_t hold, until; /* length of the next pause; end of the current one */
};

void throttle_init(struct throttle *throttle, struct feed_served *served, int source_threads);
void throttle_fini(struct throttle *throttle);
/* Call it before each burst. 0: continue; else nanoseconds to wait before the next call. */
uint64_t throttle_wait(struct throttle *throttle, uint64_t now);

#endif
