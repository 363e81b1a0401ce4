/* The loader: brings what no tier holds. Threads of its own read the source, keep what has room, and answer the readers
 * that are parked. */
#ifndef FS_STORE_LOADER_H
#define FS_STORE_LOADER_H

#include "fs/store/store.h"

struct loader;

struct loader_config {
    const struct catalog *catalog;
    const struct cut *parts;
    struct shard *shard;
    struct layer *source; /* what the loads read from */
    int threads;
    int zstd_level;

    void *user;
    /* Ask the tiers for a span; on failure the answer is as it was. Never waits for the source. */
    int (*held)(void *user, const struct span *span, struct answer *answer, enum place *place);
    /* What the read was parked for has come: ask the tiers again, and park again if they still lack something. */
    void (*resume)(void *user, struct store_read *read);
    /* The read is over. */
    void (*answered)(void *user, struct store_read *read, int error);
    /* One load that a stage waited for has ended; -ENOSPC: no tier had room, nothing was kept. */
    void (*staged)(void *user, uint32_t stage, uint32_t file, uint32_t length, int error);
};

int loader_create(const struct loader_config *config, struct loader **loader);
/* Reads that are parked are answered -ESHUTDOWN before anything else, even while the source hangs; every later park is
 * refused. */
void loader_stop(struct loader *loader);
void loader_destroy(struct loader *loader); /* stops; waits for what is being read */

/* -EINPROGRESS: the read is the loader's until `resume` or `answered`. -EAGAIN: all of it is held by now. -ESHUTDOWN,
 * -ENOMEM. */
int loader_park(struct loader *loader, struct store_read *read);
/* The same for what is not to be kept: just the span is read, from the source where no tier has it. */
int loader_direct(struct loader *loader, struct store_read *read);
uint64_t loader_parked(struct loader *loader); /* how many wait now */

/* For the stage numbered `stage` (not 0): load what is missing of the piece of PIECE_BYTES that begins at `offset`,
 * after what readers wait for. Returns how many times `staged` will be called for it, -ESHUTDOWN or -ENOMEM; `held`
 * counts the bytes that a tier holds already. Stage 0 only counts. */
int loader_stage(struct loader *loader, uint32_t stage, uint32_t file, uint64_t offset, uint64_t *held);
/* Drop what is queued for it only; what runs still ends with a call of `staged`. */
void loader_forget(struct loader *loader, uint32_t stage);

#endif
