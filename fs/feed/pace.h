/* Where the loaders are: inotify watches on directories of the data mount report each read and close of a file in them,
 * by whichever process, also where the page cache answers it. A watch keeps no mount from being taken away. */
#ifndef FS_FEED_PACE_H
#define FS_FEED_PACE_H

#include "fs/catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

struct pace;

/* -EMFILE and others: nothing can be seen. `mountpoint` is the caller's. */
int pace_create(const struct catalog *catalog, const char *mountpoint, struct pace **pace);
void pace_destroy(struct pace *pace);
int pace_fd(const struct pace *pace); /* readable: there are events */

/* Watch the directories of these files; where that is not possible for all, those that have most of them. How many
 * there are, how many of them are watched, and how many since now. */
struct pace_watched {
    uint32_t directories, watched, fresh;
};
int pace_watch(struct pace *pace, const uint32_t *file, uint32_t count, struct pace_watched *watched);
/* And all others, where they are few: that reads of files which nobody planned are seen, and those of later plans from
 * their beginning. True: all directories are watched. */
bool pace_watch_rest(struct pace *pace);
bool pace_sees(const struct pace *pace, uint32_t file); /* its directory is watched */

struct pace_events {
    void (*taken)(void *user); /* some have come, which the others are told of after this */
    void (*read)(void *user, uint32_t file);
    void (*closed)(void *user, uint32_t file); /* also by the feeder */
    void (*lost)(void *user);                  /* there were more than the queue holds */
    void *user;
};
/* Those that have come. False: the mount is gone. `drained`: there were no more. */
bool pace_take(struct pace *pace, const struct pace_events *events, bool *drained);

#endif
