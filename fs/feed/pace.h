/* Where the loaders are: inotify watches on directories of the data mount report each read and close of their files by
 * any process, also if the page cache answers it. A watch does not prevent an unmount. */
#ifndef FS_FEED_PACE_H
#define FS_FEED_PACE_H

#include "fs/catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

struct pace;

/* -EMFILE or others: nothing can be seen. `mountpoint` is borrowed. */
int pace_create(const struct catalog *catalog, const char *mountpoint, struct pace **pace);
void pace_destroy(struct pace *pace);
int pace_fd(const struct pace *pace); /* readable: there are events */

/* Watch the directories of these files; if that is not possible for all, those with most of the files. `watched`:
 * number of directories, how many are watched, how many are new. */
struct pace_watched {
    uint32_t directories, watched, fresh;
};
int pace_watch(struct pace *pace, const uint32_t *file, uint32_t count, struct pace_watched *watched);
/* If the other directories are few, also watch them: to see reads of files in no plan, and the first reads of later
 * plans. True: all directories are watched. */
bool pace_watch_rest(struct pace *pace);
bool pace_sees(const struct pace *pace, uint32_t file); /* its directory is watched */

struct pace_events {
    void (*taken)(void *user); /* called when events have arrived, before the other functions */
    void (*read)(void *user, uint32_t file);
    void (*closed)(void *user, uint32_t file); /* by any process, including the feeder */
    void (*lost)(void *user);                  /* the kernel's queue overflowed */
    void *user;
};
/* Take events that have arrived. False: the mount is gone. `drained`: the queue was empty afterwards. */
bool pace_take(struct pace *pace, const struct pace_events *events, bool *drained);

#endif
