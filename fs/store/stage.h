/* Staging: fills the shards from the source, file by file in the catalog's order, with all that this node keeps. */
#ifndef FS_STORE_STAGE_H
#define FS_STORE_STAGE_H

#include "fs/store/store.h"

struct loader;
struct stage;

int stage_create(const struct catalog *catalog, struct shard *shard, struct stage **stage);
void stage_join(struct stage *stage);    /* stops, and waits until it asks the loader for nothing more; NULL: nothing */
void stage_destroy(struct stage *stage); /* the loader calls nothing of it any more */

/* Which extents are this node's: asked by offsets that begin one, from the stage's thread and from who starts it. The
 * next start asks; before the first call, and with NULL, all are. */
void stage_set_share(struct stage *stage, bool (*keeps)(void *user, uint32_t file, uint64_t offset), void *user);

int stage_start(struct stage *stage, struct loader *loader, uint64_t round); /* as store_stage_start */
int stage_again(struct stage *stage, struct loader *loader, uint64_t round); /* as store_stage_again */
void stage_stop(struct stage *stage);                        /* does not wait for what is being read */
void stage_progress(struct stage *stage, struct stage_progress *progress);

/* The loader's notice: one load of stage `number` has ended. */
void stage_loaded(struct stage *stage, uint32_t number, uint32_t file, uint32_t length, int error);

#endif
