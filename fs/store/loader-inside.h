/* The loader as its own files see it: loader.c says who is served and what is loaded next, loader-bring.c brings it. */
#ifndef FS_STORE_LOADER_INSIDE_H
#define FS_STORE_LOADER_INSIDE_H

#include "fs/store/loader.h"
#include "fs/store/rate.h"
#include "fs/store/store-inside.h"
#include "fs/store/wants.h"

#include <pthread.h>

struct load_worker {
    struct loader *loader;
    pthread_t thread;
    struct value_codec_state *codec;
    struct store_read *serving; /* loader's lock: being served directly; NULL: none, or loader_stop took it away */
    uint64_t since; /* loader's lock: when it began what no reader waited for; 0: that is not what it does */
};

struct loader {
    struct store *store;
    atomic_bool full; /* the last load that asked for room got none */

    pthread_mutex_t lock;
    pthread_cond_t work;           /* something to do for a worker, or `stopping` */
    struct wants wants;            /* lock */
    struct fair_queue direct;      /* lock: to be served directly */
    size_t direct_bytes;           /* lock: being read directly */
    struct fair_turns turns;       /* lock: of readers and the feeder */
    struct fair_turns later_turns; /* lock: of the feeder, and loads that nobody waits for */
    int later_running;             /* lock: for the feeder, too */
    int most_fed, most_later;
    struct source_rate rate; /* lock; its bound is constant */
    atomic_int paying;       /* workers that wait until they may read the source */
    pthread_cond_t due;      /* a reader waits for what one of them loads, or `stopping` */
    int sleeping;            /* lock: workers that wait for `work` */
    bool touched;            /* lock: the source was used since it was last told to be idle */
    bool stopping;           /* lock */

    int workers;
    struct load_worker worker[];
};

/* Bytes of a span for the read that the worker serves directly; `here`: nothing of them is in a tier. */
int load_gather(struct load_worker *worker, const struct span *span, bool here, struct answer *answer);
/* -ENOSPC: there was no room, and nothing was read. */
int load_into_tier(struct load_worker *worker, struct load *load);

#endif
