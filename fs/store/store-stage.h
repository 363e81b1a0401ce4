/* Staging: fills the shards from the source with all that this node owns, file by file, in the catalog's order. Its
 * interface is in store.h: store_stage_start and the functions after it. */
#ifndef FS_STORE_STORE_STAGE_H
#define FS_STORE_STORE_STAGE_H

#include "fs/store/store.h"

struct stage;

int stage_create(struct store *store, struct stage **stage);
void stage_join(struct stage *stage);    /* stops, and waits until it no longer calls the loader; NULL is allowed */
void stage_destroy(struct stage *stage); /* only when the loader no longer calls it */

/* The loader reports: a load of stage `number` has ended. -ENOSPC: no tier had room, and nothing was cached. */
void stage_loaded(struct stage *stage, uint32_t number, uint32_t file, uint32_t length, int error);

#endif
