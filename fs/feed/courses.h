/* All courses: which of them a read belongs to, and which list is fed next.
 *
 * Lists of one kind and rank are read one after the other, by epoch. When all of one list has been fed, the next
 * list gets the room that its window leaves; before that, only a little. Lists of different ranks and jobs share
 * the room evenly. */
#ifndef FS_FEED_COURSES_H
#define FS_FEED_COURSES_H

#include "fs/feed/course.h"

enum { COURSES_MOST = 2 * FEED_PLANS }; /* requested plans, and as many guesses */

struct feed_courses {
    struct feed_course *course[COURSES_MOST]; /* ordered by the number of the request: oldest first */
    int count;
    struct feed_course *last; /* the course of the last read; NULL: none */
    uint64_t room;            /* maximum bytes that all windows together may be ahead */
};

/* Owns the course. */
void courses_add(struct feed_courses *courses, struct feed_course *course);
void courses_remove(struct feed_courses *courses, struct feed_course *course);
void courses_clear(struct feed_courses *courses);
/* A course whose loaders have all moved past the next epoch; NULL: none. */
struct feed_course *courses_stale(const struct feed_courses *courses);

/* The position that a read was matched with; NULL: none was expected. */
struct course_read {
    struct feed_course *course;
    uint32_t list, position;
    enum window_rate rate;
};
struct course_read courses_read(struct feed_courses *courses, uint32_t file, uint64_t now);

/* A loader reports how many records of a list it has read. */
void courses_told(struct feed_courses *courses, struct feed_course *course, uint32_t list, uint64_t read, uint64_t now);

/* The next file to feed. False: none until something is read. */
bool courses_take(struct feed_courses *courses, uint64_t now, struct course_read *next);
uint64_t courses_ahead(const struct feed_courses *courses);

#endif
