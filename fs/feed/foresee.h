/* Predicts plans that were not requested yet: the next epoch of a job and, with sampler=, all epochs.
 *
 * They are requested like a loader would, with feed=yes. So a loader that requests the same plan later finds it and its
 * lists ready. A prediction moves no samples. */
#ifndef FS_FEED_FORESEE_H
#define FS_FEED_FORESEE_H

#include "fs/attach/config.h"
#include "fs/feed/courses.h"
#include "fs/feed/recipe.h"

struct foresight;

/* All arguments are borrowed. -ENOMEM. If a sampler's dataset is too small or missing, this is logged, and nothing is
 * predicted for it. */
int foresee_create(const struct mount_config *config, const struct catalog *catalog, struct feed *feed,
                   const struct feed_courses *courses, struct foresight **foresight);
void foresee_destroy(struct foresight *foresight);
/* A file was read. True: in natural order, as for validation; it belongs to no list. */
bool foresee_read(struct foresight *foresight, uint32_t file);
/* Call it several times per second: it searches for a while, and requests what comes next. Returns the kind of a wrong
 * prediction, whose courses must be dropped; else 0. */
uint64_t foresee_step(struct foresight *foresight, uint64_t now);
#endif
