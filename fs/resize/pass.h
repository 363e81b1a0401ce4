/* One pass over files whose images are to be made smaller, by threads of its own: at first a sample from everywhere,
 * which tells what all will take, then the others in their order. */
#ifndef FS_RESIZE_PASS_H
#define FS_RESIZE_PASS_H

#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/store/shard.h"

/* Borrowed until pass_end. */
struct pass_config {
    struct derived *derived;    /* gets the records */
    void *bytes;                /* the derived catalog that the shards have open: sizes change under their eyes */
    struct shard *shard[TIERS]; /* of one tier each: the SSD, which lasts, is filled first; NULL: none */
    struct layer *source;
    struct crew *crew;
    const uint32_t *file; /* to be done */
    uint32_t files;
    bool passes_full; /* where nothing has room any more, what is made is not stored; else the pass stops */
};

/* So many images that stop or kill the process which works on them end a pass: each may take a minute. */
enum { PASS_CRASHES_MOST = 36 };

struct pass_state {
    uint32_t done;
    uint64_t before, after; /* bytes of what was made */
    bool full;              /* something found no room */
    bool estimated;         /* `needed` says what all of it will take in a tier */
    uint64_t needed;
    uint64_t unstored; /* bytes that found no room */
    uint32_t crashes;  /* at PASS_CRASHES_MOST nothing more will be done, */
    int error;         /* as with this */
};

struct pass;

int pass_start(const struct pass_config *config, struct pass **pass);
void pass_look(struct pass *pass, struct pass_state *now);
/* At once: what is being worked on is given up where `hard`. pass_end is still to be called. */
void pass_stop(struct pass *pass, bool hard);
/* Waits until all is done, or it has stopped; `last` is how far it came. */
void pass_end(struct pass *pass, struct pass_state *last);

/* What a made file takes in a tier. */
uint64_t pass_cost(const struct derived_record *record);

#endif
