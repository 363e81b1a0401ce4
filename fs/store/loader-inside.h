/* Shared by the files of the loader: loader.c decides which read or load is next, loader-bring.c fetches the bytes. */
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
    struct store_read *serving; /* lock: the read that is served directly; NULL: none, or loader_stop took it */
    uint64_t since;             /* lock: start of work for which no reader waits; 0: no such work */
};

struct loader {
    struct store *store;
    atomic_bool full; /* the last load that needed room found none */

    pthread_mutex_t lock;
    pthread_cond_t work;           /* signals workers: there is work, or `stopping` */
    struct wants wants;            /* guarded by lock */
    struct fair_queue direct;      /* lock: reads to be served directly */
    size_t direct_bytes;           /* lock: bytes that are being read directly */
    struct fair_turns turns;       /* lock: turns of readers and the feeder */
    struct fair_turns later_turns; /* lock: turns of the feeder and of loads without waiting readers */
    int later_running;             /* lock: workers that serve these */
    int most_fed, most_later;
    struct source_rate rate; /* lock; the limit itself is constant */
    atomic_int paying;       /* number of workers that wait for the rate */
    pthread_cond_t due;      /* signalled when a reader waits for what such a worker loads, or `stopping` */
    int sleeping;            /* lock: number of workers that wait for `work` */
    bool touched;            /* lock: the source was used since its last idle call */
    bool stopping;           /* guarded by lock */

    int workers;
    struct load_worker worker[];
};

/* Get the bytes of a span for the read that the worker serves directly. `here`: no tier has any of them. */
int load_gather(struct load_worker *worker, const struct span *span, bool here, struct answer *answer);
/* -ENOSPC: there was no room, and nothing was read. */
int load_into_tier(struct load_worker *worker, struct load *load);

#endif
