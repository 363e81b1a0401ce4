/* Matches reads with lists, and chooses the next list to feed. */
#include "fs/feed/courses.h"

#include "fs/base/clock.h"

#include <stddef.h>
#include <string.h>

enum {
    ALIVE_S = 60,    /* a rank that has not read for this long does not count */
    CLEAR = 64,      /* a read within this distance of a loader's position cannot belong to another list */
    AHEAD_SHARE = 8, /* while the current list has more to feed, the next one gets this part of the room */
    CONFIRMED = 4,   /* this many reads of a list prove that the previous one was left */
};

/* Index of the same rank's list in another course of this kind, or -1. */
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
            cs->last = cs->last == course ? NULL : cs->last;
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

static bool is_left(const struct feed_course *c)
{
    for (uint32_t r = 0; r < c->ranks; r++)
        if (!c->left[r])
            return false;
    return true;
}

struct feed_course *courses_stale(const struct feed_courses *cs)
{
    for (int i = 0; i < cs->count; i++)
        for (int j = 0; j < cs->count; j++)
            if (cs->course[j]->kind == cs->course[i]->kind && cs->course[j]->epoch > cs->course[i]->epoch + 1 &&
                (!cs->course[j]->guessed || cs->course[i]->guessed) && is_left(cs->course[i]))
                return cs->course[i];
    return NULL;
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

/* May reads of this list be expected? Not before the previous epoch's list is at its end. If neither was read yet,
 * either may be first. */
static bool is_open(const struct feed_course *c, uint32_t list)
{
    int b = same_rank(c->before, c->rank[list]);
    if (b < 0 || c->before->left[b] || c->seen[list] || !c->before->seen[b])
        return true;
    const struct window *w = &c->before->window[b];
    return w->reached + w->count / 16 + 1 >= w->count;
}

static uint32_t distance_of(const struct course_read *read)
{
    uint32_t reached = read->course->window[read->list].reached;
    return read->position > reached ? read->position - reached : reached - read->position;
}

/* Of several possible places, choose the one nearest to its loader. */
static void rate_place(struct feed_course *c, uint32_t place, struct course_read *best)
{
    uint32_t position, list = course_list(c, place, &position);
    struct course_read read = {c, list, position, WINDOW_STRAY};
    enum window_rate rate = window_rate(&c->window[list], position);
    if (rate == WINDOW_RECENTLY || (!c->left[list] && is_open(c, list)))
        read.rate = rate;
    bool foreseen = read.rate == WINDOW_NEAR || read.rate == WINDOW_AHEAD;
    if (!best->course ||
        (foreseen && (best->rate == WINDOW_NEAR || best->rate == WINDOW_AHEAD) ? distance_of(&read) < distance_of(best)
                                                                               : read.rate > best->rate))
        *best = read;
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

void courses_told(struct feed_courses *cs, struct feed_course *c, uint32_t list, uint64_t read, uint64_t now)
{
    struct window *w = &c->window[list];
    cs->last = c;
    c->seen[list] = now;
    c->left[list] = false;
    window_told(w, read < w->count ? (uint32_t)read : w->count);
    if (read > 0)
        leave_before(c, list);
}

/* Report a stray read to every list with this file: if a loader has jumped, its new list sees more such reads. */
static void take_stray(struct feed_courses *cs, uint32_t file, uint64_t now)
{
    for (int i = 0; i < cs->count; i++) {
        struct feed_course *c = cs->course[i];
        struct course_places places = course_find(c, file);
        for (uint32_t p = 0; p < places.count; p++) {
            uint32_t position, list = course_list(c, places.place[p], &position);
            if (!window_stray(&c->window[list], position))
                continue;
            c->left[list] = false;
            c->seen[list] = now;
            leave_before(c, list);
            return;
        }
    }
}

static void rate_in(struct feed_course *c, uint32_t file, struct course_read *best)
{
    struct course_places places = course_find(c, file);
    for (uint32_t p = 0; p < places.count; p++)
        rate_place(c, places.place[p], best);
}

/* Nearly every read belongs to the same list as the previous one, and was fed for it: then no other list is
 * considered. */
struct course_read courses_read(struct feed_courses *cs, uint32_t file, uint64_t now)
{
    struct course_read best = {0};
    if (cs->last)
        rate_in(cs->last, file, &best);
    bool clear =
        best.course && (best.rate == WINDOW_AHEAD || best.rate == WINDOW_RECENTLY) && distance_of(&best) < CLEAR;
    for (int i = 0; !clear && i < cs->count; i++)
        if (cs->course[i] != cs->last)
            rate_in(cs->course[i], file, &best);
    if (best.course && best.rate != WINDOW_STRAY) {
        cs->last = best.course;
        take_read(&best, now);
    } else if (best.course) {
        take_stray(cs, file, now);
    }
    return best;
}

/* --- feeding --- */

static bool is_alive(const struct feed_course *c, uint32_t list, uint64_t now)
{
    uint64_t last = c->seen[list] > c->began ? c->seen[list] : c->began;
    return !c->left[list] && now - last < ALIVE_S * SECOND;
}

/* Does the list wait for the previous epoch's list, which is still being read? */
static bool is_next(const struct feed_course *c, uint32_t list, uint64_t now)
{
    int b = same_rank(c->before, c->rank[list]);
    return b >= 0 && c->before->seen[b] && is_alive(c->before, (uint32_t)b, now);
}

static uint32_t count_sharers(const struct feed_courses *cs, uint64_t now)
{
    uint32_t sharers = 0;
    for (int i = 0; i < cs->count; i++)
        for (uint32_t r = 0; r < cs->course[i]->ranks; r++)
            sharers += is_alive(cs->course[i], r, now) && !is_next(cs->course[i], r, now);
    return sharers ? sharers : 1;
}

/* The room of a list is what earlier epochs leave of their common share. While the current list has more to feed, the
 * next list still gets a little: a loader may leave the current one at any time. */
static uint64_t room_after(const struct feed_course *c, uint32_t list, uint64_t share)
{
    uint64_t room = share;
    for (const struct feed_course *b = c->before; b; b = b->before) {
        int r = same_rank(b, c->rank[list]);
        if (r < 0 || b->left[r] || !b->seen[r])
            continue;
        if (b->window[r].fed < b->window[r].count)
            return share / AHEAD_SHARE;
        room -= b->window[r].ahead < room ? b->window[r].ahead : room;
    }
    return room;
}

/* Of the lists with something to feed and room for it, choose the one that is least far ahead. */
static struct course_read choose_list(struct feed_courses *cs, uint64_t share)
{
    struct course_read chosen = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < cs->count; i++) {
        struct feed_course *c = cs->course[i];
        for (uint32_t r = 0; r < c->ranks; r++) {
            struct window *w = &c->window[r];
            w->room = room_after(c, r, share);
            if (c->left[r] || w->fed >= w->count || w->ahead >= w->room || w->ahead >= least ||
                w->fed - w->reached >= w->trust)
                continue;
            least = w->ahead;
            chosen = (struct course_read){.course = c, .list = r};
        }
    }
    return chosen;
}

/* A chosen list may have nothing to feed, if its rest was already read: then choose again. */
bool courses_take(struct feed_courses *cs, uint64_t now, struct course_read *next)
{
    uint64_t share = cs->room / count_sharers(cs, now);
    do
        *next = choose_list(cs, share);
    while (next->course && !window_take(&next->course->window[next->list], &next->position));
    return next->course != NULL;
}
