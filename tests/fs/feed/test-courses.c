/* Epochs of one loader, one after the other: whose reads are whose, and when the lists of one are needed no more. */
#include "fs/feed/courses.h"

#include "tests/lib/tap.h"

#include <stdlib.h>

enum { COUNT = 200, KIND = 7, OTHER_KIND = 8 };

static uint64_t bytes_of(void *user, uint32_t file)
{
    (void)user;
    (void)file;
    return 1;
}

static bool sees(void *user, uint32_t file)
{
    (void)user;
    (void)file;
    return true;
}

static const struct window_files files = {bytes_of, sees, NULL};
static uint64_t now = 1;

/* Each epoch has an order of its own. */
static uint32_t file_at(uint64_t epoch, uint32_t position)
{
    static const uint32_t factor[] = {1, 7, 13, 31, 57};
    return (uint32_t)(position * factor[epoch % 5] + epoch) % COUNT;
}

static struct feed_course *begin(struct feed_courses *courses, uint64_t kind, uint64_t epoch)
{
    const uint32_t count = COUNT;
    struct feed_course *course;
    uint32_t *file = malloc(COUNT * sizeof *file);
    for (uint32_t i = 0; file && i < COUNT; i++)
        file[i] = file_at(epoch, i);
    if (!file || course_create(&(struct course_lists){file, &count, 1, COUNT}, &files, &course))
        bail_out("out of memory");
    course->kind = kind;
    course->epoch = epoch;
    course->began = now;
    courses_add(courses, course);
    return course;
}

static void pour_out(struct feed_courses *courses)
{
    struct course_read next;
    while (courses_take(courses, now, &next))
        ;
}

/* Returns how many of the reads were taken for this course's. */
static uint32_t read_all(struct feed_courses *courses, const struct feed_course *course)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        pour_out(courses);
        taken += courses_read(courses, file_at(course->epoch, i), ++now).course == course;
    }
    return taken;
}

int main(void)
{
    struct feed_courses courses = {.room = 32};
    ok(!courses_stale(&courses), "nothing is stale where there is nothing");
    const struct feed_course *first = begin(&courses, KIND, 1), *other = begin(&courses, OTHER_KIND, 9);
    is_uint(read_all(&courses, first), COUNT, "the first epoch's reads are its own");
    ok(!courses_stale(&courses), "it is the last of its kind: kept");
    const struct feed_course *second = begin(&courses, KIND, 2);
    is_uint(read_all(&courses, second), COUNT, "the second's are");
    ok(first->left[0] && !second->left[0], "the first has been left");
    ok(!courses_stale(&courses), "the one before is kept");
    const struct feed_course *third = begin(&courses, KIND, 3);
    ok(courses_stale(&courses) == first, "that before it is stale");
    is_uint(read_all(&courses, third), COUNT, "the third's reads are its own");
    courses_remove(&courses, courses_stale(&courses));
    ok(!courses_stale(&courses), "and no other");
    ok(!other->left[0] && courses.count == 3, "what nobody has read yet stays");
    courses_clear(&courses);
    return done_testing();
}
