/* Reads find their list, and lists their turn. */
#include "fs/feed/courses.h"

#include "fs/base/clock.h"

#include <stddef.h>
#include <string.h>

enum {
    PLACES_MOST = 64, /* of a file in one course that are looked at */
    ALIVE_S = 60,     /* a rank that has not read for so long does not count */
    CONFIRMED = 4,    /* reads of a list that tell that the one before has been left */
};

/* The same rank's list in another course of the same kind: an index, or -1. */
static int same_rank(const struct feed_course *c, uint32_t rank)
{
    for (uint32_t r = 0; c && r < c->ranks; r++)
        if (c->rank[r] == rank)
            return (int)r;
    return -1;
}

static void link_courses(struct feed_courses *cs)
{
    for (int i = 0; i < cs->count; i++) {
        struct feed_course *c = cs->course[i];
        c->before = NULL;
        for (int j = 0; j < cs->count; j++) {
            struct feed_course *other = cs->course[j];
            if (other->kind == c->kind && other->epoch < c->epoch && (!c->before || other->epoch > c->before->epoch))
                c->before = other;
        }
    }
}

void courses_add(struct feed_courses *cs, struct feed_course *course)
{
    if (cs->count == COURSES_MOST)
        courses_remove(cs, cs->course[0]);
    cs->course[cs->count++] = course;
    link_courses(cs);
}

void courses_remove(struct feed_courses *cs, struct feed_course *course)
{
    for (int i = 0; i < cs->count; i++)
        if (cs->course[i] == course) {
            memmove(&cs->course[i], &cs->course[i + 1], (size_t)(cs->count - i - 1) * sizeof *cs->course);
            cs->count--;
            course_destroy(course);
            break;
        }
    link_courses(cs);
}

void courses_clear(struct feed_courses *cs)
{
    while (cs->count > 0)
        courses_remove(cs, cs->course[0]);
}

uint64_t courses_ahead(const struct feed_courses *cs)
{
    uint64_t ahead = 0;
    for (int i = 0; i < cs->count; i++)
        for (uint32_t r = 0; r < cs->course[i]->ranks; r++)
            ahead += cs->course[i]->window[r].ahead;
    return ahead;
}

/* --- reads --- */

/* Of a list that is to be read after another one nothing is expected before that is at its end. */
static bool is_open(const struct feed_course *c, uint32_t list)
{
    int b = same_rank(c->before, c->rank[list]);
    if (b < 0 || c->before->left[b] || c->seen[list])
        return true;
    const struct window *w = &c->before->window[b];
    return w->reached + w->count / 16 + 1 >= w->count;
}

static void rate_place(struct feed_course *c, uint32_t place, struct course_read *best)
{
    uint32_t list = course_list(c, place), position = place - c->start[list];
    enum window_rate rate = window_rate(&c->window[list], position);
    if (c->left[list] || (rate != WINDOW_RECENTLY && !is_open(c, list)))
        rate = WINDOW_STRAY;
    if (!best->course || rate > best->rate)
        *best = (struct course_read){c, list, position, rate};
}

static void leave_before(struct feed_course *c, uint32_t list)
{
    uint32_t rank = c->rank[list];
    for (struct feed_course *b = c->before; b; b = b->before) {
        int r = same_rank(b, rank);
        if (r < 0 || b->left[r])
            continue;
        b->left[r] = true;
        window_leave(&b->window[r]);
    }
}

static void take_read(struct course_read *read, uint64_t now)
{
    struct feed_course *c = read->course;
    c->seen[read->list] = now;
    if (read->rate == WINDOW_RECENTLY)
        return;
    window_read(&c->window[read->list], read->position);
    if (c->window[read->list].read >= CONFIRMED && c->before)
        leave_before(c, read->list);
}

/* Every list that has the file is told: the one that the loader has jumped to will see more of it. */
static void take_stray(struct feed_courses *cs, uint32_t file, uint64_t now)
{
    for (int i = 0; i < cs->count; i++) {
        struct feed_course *c = cs->course[i];
        struct course_places places = course_find(c, file);
        for (uint32_t p = 0; p < places.count && p < PLACES_MOST; p++) {
            uint32_t list = course_list(c, places.place[p]);
            if (!window_stray(&c->window[list], places.place[p] - c->start[list]))
                continue;
            c->left[list] = false;
            c->seen[list] = now;
            leave_before(c, list);
            return;
        }
    }
}

struct course_read courses_read(struct feed_courses *cs, uint32_t file, uint64_t now)
{
    struct course_read best = {0};
    for (int i = 0; i < cs->count; i++) {
        struct course_places places = course_find(cs->course[i], file);
        for (uint32_t p = 0; p < places.count && p < PLACES_MOST; p++)
            rate_place(cs->course[i], places.place[p], &best);
    }
    if (best.course && best.rate != WINDOW_STRAY)
        take_read(&best, now);
    else if (best.course)
        take_stray(cs, file, now);
    return best;
}

/* --- feeding --- */

static bool is_alive(const struct feed_course *c, uint32_t list, uint64_t now)
{
    uint64_t last = c->seen[list] > c->began ? c->seen[list] : c->began;
    return !c->left[list] && now - last < ALIVE_S * SECOND;
}

/* Lists of one kind and rank count once. */
static uint32_t count_sharers(const struct feed_courses *cs, uint64_t now)
{
    uint32_t sharers = 0;
    for (int i = 0; i < cs->count; i++) {
        const struct feed_course *c = cs->course[i];
        for (uint32_t r = 0; r < c->ranks; r++) {
            int b = same_rank(c->before, c->rank[r]);
            bool counted = b >= 0 && is_alive(c->before, (uint32_t)b, now);
            sharers += is_alive(c, r, now) && !counted;
        }
    }
    return sharers ? sharers : 1;
}

/* What lies before a list takes of the room that they have together. False: all of that is to be fed first. */
static bool room_after(const struct feed_course *c, uint32_t list, uint64_t *room)
{
    for (const struct feed_course *b = c->before; b; b = b->before) {
        int r = same_rank(b, c->rank[list]);
        if (r < 0 || b->left[r])
            continue;
        if (b->window[r].fed < b->window[r].count)
            return false;
        *room -= b->window[r].ahead < *room ? b->window[r].ahead : *room;
    }
    return true;
}

/* The list that is least far ahead, of those with something to feed and room for it. */
static struct course_read choose_list(struct feed_courses *cs, uint64_t share)
{
    struct course_read chosen = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < cs->count; i++) {
        struct feed_course *c = cs->course[i];
        for (uint32_t r = 0; r < c->ranks; r++) {
            struct window *w = &c->window[r];
            w->room = share;
            if (c->left[r] || w->fed >= w->count || !room_after(c, r, &w->room) || w->ahead >= w->room ||
                w->ahead >= least || w->fed - w->reached >= w->trust)
                continue;
            least = w->ahead;
            chosen = (struct course_read){.course = c, .list = r};
        }
    }
    return chosen;
}

/* A list whose rest has been read already turns out to have nothing. */
bool courses_take(struct feed_courses *cs, uint64_t now, struct course_read *next)
{
    uint64_t share = cs->room / count_sharers(cs, now);
    do
        *next = choose_list(cs, share);
    while (next->course && !window_take(&next->course->window[next->list], &next->position));
    return next->course != NULL;
}
