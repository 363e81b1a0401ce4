/* A pass over files whose images are to be resized, with its own threads: first a sample from everywhere, which gives
 * an estimate of the total, then the others in order. */
#ifndef FS_RESIZE_PASS_H
#define FS_RESIZE_PASS_H

#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/store/shard.h"

/* Borrowed until pass_end. */
struct pass_config {
    struct derived *derived;    /* gets the records */
    void *bytes;                /* the derived catalog, which the shards have open: its sizes change */
    struct shard *shard[TIERS]; /* one per tier: the SSD, which lasts, is filled first; NULL: none */
    struct layer *source;
    struct crew *crew;
    const uint32_t *file; /* the files to make */
    uint32_t files;
    bool passes_full; /* when nothing has room any more, continue without storing; otherwise stop */
};

/* A pass stops after this many images that hang or kill the process which works on them: each may take a minute. */
enum { PASS_CRASHES_MOST = 36 };

struct pass_state {
    uint32_t done;
    uint64_t before, after; /* bytes of resized images */
    bool full;              /* something found no room */
    bool estimated;         /* `needed` has the estimate of what all of it takes in a tier */
    uint64_t needed;
    uint64_t unstored; /* bytes that found no room */
    uint32_t crashes;  /* at PASS_CRASHES_MOST the pass stops */
    int error;         /* also stops the pass */
};

struct pass;

int pass_start(const struct pass_config *config, struct pass **pass);
void pass_look(struct pass *pass, struct pass_state *now);
/* Stops at once; with `hard`, work in progress is given up. Call pass_end afterwards. */
void pass_stop(struct pass *pass, bool hard);
/* Waits until all is done, or it has stopped; `last`: the final state. */
void pass_end(struct pass *pass, struct pass_state *last);

/* Room that a resized file takes in a tier. */
uint64_t pass_cost(const struct derived_record *record);

#endif
