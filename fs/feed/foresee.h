/* Plans that nobody has asked for yet: the next epoch of a job, and with sampler= all of them.
 *
 * They are asked for as a loader would ask, with feed=yes; so a loader that asks for the same plan later finds it, and
 * its lists, ready. What is guessed moves no sample. */
#ifndef FS_FEED_FORESEE_H
#define FS_FEED_FORESEE_H

#include "fs/attach/config.h"
#include "fs/feed/courses.h"
#include "fs/feed/recipe.h"

struct foresight;

/* All is borrowed. -ENOMEM. A sampler whose dataset is too small, or not there, is said in the log and not foreseen. */
int foresee_create(const struct mount_config *config, const struct catalog *catalog, struct feed *feed,
                   const struct feed_courses *courses, struct foresight **foresight);
void foresee_destroy(struct foresight *foresight);
/* A file was read. True: in a natural order, as for validation: no list is meant. */
bool foresee_read(struct foresight *foresight, uint32_t file);
/* A few times per second: searches for a while, asks for what comes next. Returns the kind of a prediction that turned
 * out wrong, whose courses are to be dropped; else 0. */
uint64_t foresee_step(struct foresight *foresight, uint64_t now);
#endif
