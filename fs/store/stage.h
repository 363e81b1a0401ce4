/* Staging: fills the shards from the source, file by file in the catalog's order. */
#ifndef FS_STORE_STAGE_H
#define FS_STORE_STAGE_H

#include "fs/store/store.h"

struct loader;
struct stage;

int stage_create(const struct catalog *catalog, struct shard *shard, struct stage **stage);
void stage_join(struct stage *stage);    /* stops, and waits until it asks the loader for nothing more; NULL: nothing */
void stage_destroy(struct stage *stage); /* the loader calls nothing of it any more */

int stage_start(struct stage *stage, struct loader *loader); /* 0 also when it runs already */
void stage_stop(struct stage *stage);                        /* does not wait for what is being read */
void stage_progress(struct stage *stage, struct stage_progress *progress);

/* The loader's notice: one load of stage `number` has ended. */
void stage_loaded(struct stage *stage, uint32_t number, uint32_t file, uint32_t length, int error);

#endif
