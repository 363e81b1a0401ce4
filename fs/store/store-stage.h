/* Staging: fills the shards from the source with all that this node owns, file by file, in the catalog's order. */
#ifndef FS_STORE_STORE_STAGE_H
#define FS_STORE_STORE_STAGE_H

#include "fs/catalog/samples.h"

struct store;

/* Fill the shards from the source. Loads that readers wait for take precedence. Totals: what this node owns. */
struct stage_progress {
    enum { STAGE_IDLE, STAGE_RUNNING, STAGE_DONE, STAGE_STOPPED, STAGE_FAILED } state;
    int error;                                       /* of the first sample that failed; staging continues */
    uint64_t failed;                                 /* samples */
    uint64_t files, files_total, bytes, bytes_total; /* done so far, and in all */
    uint64_t kept;                                   /* raw bytes of bytes_total that a tier now has */
    uint64_t elapsed;                                /* nanoseconds */
    uint64_t round;                                  /* the highest round that it was started with */
};
/* In a world: this node's share. `round` identifies a stage of all nodes together: a known or older round changes
 * nothing; 0: none. Returns 0 also if it runs already. `chosen`: the files to stage, in this order; NULL: all. If other
 * files are being staged, that is stopped. */
int store_stage_start(struct store *store, uint64_t round, struct samples *chosen);
/* This node owns more than before: a stage that is done or runs continues with that, under this round, with the same
 * chosen files. One that was stopped or never started does not. */
int store_stage_again(struct store *store, uint64_t round);
void store_stage_stop(struct store *store);
void store_stage_progress(struct store *store, struct stage_progress *progress);

#endif
