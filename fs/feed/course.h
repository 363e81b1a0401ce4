/* A plan that is fed: the lists of this node's ranks, as file numbers, with a window each; and which positions of them
 * a file has. Lists of records have numbers of records instead: no event tells of which record is read, so no position
 * is found by a file. Their loaders say where they are. */
#ifndef FS_FEED_COURSE_H
#define FS_FEED_COURSE_H

#include "fs/catalog/samples.h"
#include "fs/feed/window.h"
#include "fs/wire/feed.h"

struct coverage_plan;
struct feed_course {
    uint64_t number, epoch;
    uint64_t kind;  /* a hash of the pairs except for what differs from one epoch to the next */
    uint32_t span;  /* positions from its loader within which reads are its own */
    bool guessed;   /* no loader has asked for it */
    int slot;       /* in feed->plan and feed->rank; -1: none */
    uint32_t ranks; /* how many lists there are */
    uint32_t rank[FEED_RANKS];
    uint32_t start[FEED_RANKS + 1]; /* where each list begins in `file`; and its end */
    uint32_t *file;                 /* of each position of each list, one list after the other */
    uint32_t *sorted;               /* the places in `file`, by file, and then as they are */
    struct samples *records;        /* NULL: lists of files */
    struct window_files sizes;      /* of records */
    uint64_t most;                  /* bytes of a record that are fed */
    uint64_t *containers;           /* a bit for each file that has a record; NULL: lists of files */
    struct window window[FEED_RANKS];
    uint64_t seen[FEED_RANKS];      /* when a read of the list was last seen, 0: never */
    uint64_t began;                 /* when it was asked for */
    bool watched;                   /* all directories of its files are */
    bool left[FEED_RANKS];          /* the loader of this rank is in a later epoch */
    struct coverage_plan *coverage; /* NULL: none */
    struct feed_course *before;     /* the same kind's epoch before this one, if it is there */
};

struct course_lists {
    uint32_t *file; /* the course's from then on, also on failure */
    const uint32_t *counts;
    uint32_t ranks;
    uint32_t files; /* all are below */
};
int course_create(const struct course_lists *lists, const struct window_files *files, struct feed_course **course);
/* The same of records of the list, up to `most` bytes of each. */
int course_create_records(const struct course_lists *lists, struct samples *list, uint64_t most,
                          struct feed_course **course);
void course_destroy(struct feed_course *course);

/* Where a file is in the lists: a slice of `sorted`, of its first places there. */
enum { COURSE_PLACES = 64 };
struct course_places {
    const uint32_t *place;
    uint32_t count;
};
bool course_has(const struct feed_course *c, uint32_t file); /* anywhere in its lists */
struct course_places course_find(const struct feed_course *c, uint32_t file);
/* Whose list a place belongs to: an index into `rank`. */
uint32_t course_list(const struct feed_course *c, uint32_t place);

#endif
