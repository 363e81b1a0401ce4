/* May more be asked for now? Not while the server has enough of the feeder's READs in progress; and what comes from
 * this node's memory anyway is only worth a core that nobody else wants. */
#ifndef FS_FEED_THROTTLE_H
#define FS_FEED_THROTTLE_H

#include "fs/wire/feed.h"

enum { THROTTLE_BURST = 16 /* files, between two looks */ };

struct throttle {
    struct feed_served *served;
    uint32_t source_most; /* READs that may wait for the source */
    int schedstat;        /* /proc/self/schedstat; -1: unavailable */
    uint64_t ran, waited; /* nanoseconds on a core and for one, when last looked at */
    uint64_t reads, ram;  /* of `served`, likewise */
    bool only_ram;        /* the last READs were answered from this node's memory */
    uint64_t hold, until; /* for how long the next pause is; when this one ends */
};

void throttle_init(struct throttle *throttle, struct feed_served *served, int source_threads);
void throttle_fini(struct throttle *throttle);
/* Before each burst. 0: go on; else how many nanoseconds to wait before asking again. */
uint64_t throttle_wait(struct throttle *throttle, uint64_t now);

#endif
