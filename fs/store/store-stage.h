/* Staging: fills the shards from the source, file by file in the catalog's order, with all that this node keeps. What
 * others ask of it is in store.h: store_stage_start and its neighbours. */
#ifndef FS_STORE_STORE_STAGE_H
#define FS_STORE_STORE_STAGE_H

#include "fs/store/store.h"

struct stage;

int stage_create(struct store *store, struct stage **stage);
void stage_join(struct stage *stage);    /* stops, and waits until it asks the loader for nothing more; NULL: nothing */
void stage_destroy(struct stage *stage); /* the loader calls nothing of it any more */

/* The loader's notice: one load of stage `number` has ended; -ENOSPC: no tier had room, nothing was kept. */
void stage_loaded(struct stage *stage, uint32_t number, uint32_t file, uint32_t length, int error);

#endif
