/* A plan's pairs, and what they make: the lists of its ranks, read from the control mount like any loader reads them,
 * as file numbers. */
#ifndef FS_FEED_RECIPE_H
#define FS_FEED_RECIPE_H

#include "fs/catalog/samples.h"
#include "fs/feed/course.h"
#include "fs/feed/desk.h"

struct recipe {
    uint64_t number, epoch;
    bool guessed; /* by the feeder itself */
    uint32_t ranks, rank[FEED_RANKS];
    struct feed_asking asking[FEED_RANKS];
    char pairs[FEED_TEXT];
};

/* What the server wrote, as far as it can be right. False: nothing is there, or it is being written. */
bool recipe_take(const struct feed *feed, unsigned slot, struct recipe *recipe);

/* Lists of samples, the last one kept. */
struct recipe_book {
    const struct catalog *catalog;
    struct desk desk;
    const char *directory; /* for scratch memory */
    uint64_t most;         /* bytes of a record that are fed */
    char *key;             /* what the kept one is of; NULL: none is */
    uint64_t version;      /* of a list that was uploaded: its inode */
    struct samples *samples;
};
void recipe_book_fini(struct recipe_book *book);

/* Asks the server, and waits for it. 0 or -errno. */
int recipe_make(struct recipe_book *book, const struct recipe *recipe, const struct window_files *files,
                struct feed_course **course);

#endif
