/* A course: a plan that is fed. It has the lists of this node's ranks as file numbers, a window per list, and an index
 * from files to positions. Lists of records have record numbers instead and no index, because no event says which
 * record is read: their loaders report their positions. */
#ifndef FS_FEED_COURSE_H
#define FS_FEED_COURSE_H

#include "fs/catalog/samples.h"
#include "fs/feed/window.h"
#include "fs/wire/feed.h"

struct coverage_plan;
struct feed_course {
    uint64_t number, epoch;
    uint64_t kind;  /* hash of the pairs, without those that change between epochs */
    uint32_t span;  /* reads within this distance of the loader's position are taken for its own */
    bool guessed;   /* predicted; no loader has requested it */
    int slot;       /* in feed->plan and feed->rank; -1: none */
    uint32_t ranks; /* number of lists */
    uint32_t rank[FEED_RANKS];
    uint32_t start[FEED_RANKS + 1]; /* where each list begins in `file`; the last element is its end */
    uint32_t *file;                 /* the file at each position of each list; the lists are concatenated */
    uint32_t *sorted;               /* places in `file`, sorted by file, then by place */
    struct samples *records;        /* NULL: lists of files */
    struct window_files sizes;      /* of records */
    uint64_t most;                  /* maximum bytes of a record that are fed */
    uint64_t *containers;           /* one bit per file, set if it has a record; NULL: lists of files */
    struct window window[FEED_RANKS];
    uint64_t seen[FEED_RANKS];      /* when a read of the list was last seen; 0: never */
    uint64_t began;                 /* when the plan was requested */
    bool watched;                   /* all directories of its files are watched */
    bool left[FEED_RANKS];          /* the loader of this rank is in a later epoch */
    struct coverage_plan *coverage; /* NULL: none */
    struct feed_course *before;     /* the course of the previous epoch of this kind, if there is one */
};

struct course_lists {
    uint32_t *file; /* owned by the course from then on, also on failure */
    const uint32_t *counts;
    uint32_t ranks;
    uint32_t files; /* all file numbers are below this */
};
int course_create(const struct course_lists *lists, const struct window_files *files, struct feed_course **course);
/* The same for a list of records; at most `most` bytes of each are fed. */
int course_create_records(const struct course_lists *lists, struct samples *list, uint64_t most,
                          struct feed_course **course);
void course_destroy(struct feed_course *course);

/* The first places of a file in the lists: a slice of `sorted`. */
enum { COURSE_PLACES = 64 };
struct course_places {
    const uint32_t *place;
    uint32_t count;
};
bool course_has(const struct feed_course *c, uint32_t file); /* in any of its lists */
struct course_places course_find(const struct feed_course *c, uint32_t file);
/* Index into `rank` of the list that this place belongs to, and its position there. */
uint32_t course_list(const struct feed_course *c, uint32_t place, uint32_t *position);

#endif
