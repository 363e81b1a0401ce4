/* A plan's pairs, and the lists of its ranks, which are read from the control mount like a loader does, as file
 * numbers. */
#ifndef FS_FEED_RECIPE_H
#define FS_FEED_RECIPE_H

#include "fs/catalog/samples.h"
#include "fs/feed/course.h"
#include "fs/feed/desk.h"

/* Copy what the server wrote, if it is valid. False: there is nothing, or it is being written. */
bool recipe_take(const struct feed *feed, unsigned slot, struct feed_plan *plan);

/* Sample lists; the last one is cached. */
struct recipe_book {
    const struct catalog *catalog;
    struct desk desk;
    const char *directory; /* for scratch memory */
    uint64_t most;         /* maximum bytes of a record that are fed */
    char *key;             /* of the cached list; NULL: none */
    uint64_t version;      /* of an uploaded list: its inode number */
    struct samples *samples;
};
void recipe_book_fini(struct recipe_book *book);

/* Requests the lists from the server, and waits. 0 or -errno. */
int recipe_make(struct recipe_book *book, const struct feed_plan *recipe, const struct window_files *files,
                struct feed_course **course);

#endif
