/* All that is fed: the courses, which of them a read belongs to, and which list is next.
 *
 * Lists of one kind and rank are read one after the other, by epoch: when all of one has been fed, the next gets what
 * its window leaves, and until then only a little. Lists of different ranks, and of different jobs, share the room
 * evenly. */
#ifndef FS_FEED_COURSES_H
#define FS_FEED_COURSES_H

#include "fs/feed/course.h"

enum { COURSES_MOST = 2 * FEED_PLANS }; /* those that were asked for, and as many guesses */

struct feed_courses {
    struct feed_course *course[COURSES_MOST]; /* by number of the asking: the first ones came first */
    int count;
    struct feed_course *last; /* that the last read was of; NULL: none */
    uint64_t room;            /* bytes that all of them may be ahead */
};

/* Takes it over. */
void courses_add(struct feed_courses *courses, struct feed_course *course);
void courses_remove(struct feed_courses *courses, struct feed_course *course);
void courses_clear(struct feed_courses *courses);
/* One whose loaders have all gone on, to another epoch than the next, and asked for that; NULL: none. */
struct feed_course *courses_stale(const struct feed_courses *courses);

/* A file was read. What it was taken for: NULL: nothing that was foreseen. */
struct course_read {
    struct feed_course *course;
    uint32_t list, position;
    enum window_rate rate;
};
struct course_read courses_read(struct feed_courses *courses, uint32_t file, uint64_t now);

/* A loader of records says how many of a list it has read. */
void courses_told(struct feed_courses *courses, struct feed_course *course, uint32_t list, uint64_t read, uint64_t now);

/* The next to be fed. False: nothing, until something is read. */
bool courses_take(struct feed_courses *courses, uint64_t now, struct course_read *next);
uint64_t courses_ahead(const struct feed_courses *courses);

#endif
