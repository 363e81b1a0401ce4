/* Matches reads with lists. See coverage.h. */
#include "fs/feed/coverage-inside.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- where a loader is --- */

static int by_position(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Position of a loader: after the third-highest of its last eight reads. Workers read batches concurrently, and up to
 * two stray reads must not count. */
uint32_t list_reached(const struct coverage_list *l, uint32_t length)
{
    uint32_t last[LATEST], n = l->reads < LATEST ? (uint32_t)l->reads : LATEST;
    if (l->files_read == l->files)
        return length;
    if (l->told > 0)
        return l->told;
    if (n < STRAYS && l->resumed > 0)
        return l->resumed;
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        last[i] = l->latest[(l->reads - 1 - i) % LATEST];
    qsort(last, n, sizeof *last, by_position);
    return last[n < STRAYS ? n - 1 : STRAYS - 1] + 1;
}

static uint32_t distance_to(const struct coverage_plan *p, uint32_t list, uint32_t position)
{
    uint32_t reached = list_reached(&p->list[list], list_length(p, list));
    return position > reached ? position - reached : reached - position;
}

unsigned list_state(const struct coverage_plan *p, uint32_t list, uint32_t file, uint32_t *first)
{
    struct course_places places = course_find(p->course, file);
    unsigned state = 0;
    *first = UINT32_MAX;
    for (uint32_t i = 0; i < places.count; i++) {
        uint32_t position;
        if (course_list(p->course, places.place[i], &position) != list)
            continue;
        *first = *first < position ? *first : position;
        state |= p->list[list].state[position];
    }
    return state;
}

/* --- reads --- */

struct choice {
    struct coverage_plan *plan; /* NULL: none */
    uint32_t list, position, distance;
};

static void mark_read(const struct choice *at, uint32_t file, uint64_t now)
{
    struct coverage_list *l = &at->plan->list[at->list];
    uint32_t first;
    l->files_read += !(list_state(at->plan, at->list, file, &first) & ENTRY_READ);
    l->state[at->position] |= ENTRY_READ;
    l->latest[l->reads++ % LATEST] = at->position;
    if (l->began == 0)
        l->began = clock_realtime();
    l->ended = clock_realtime();
    l->seen = now;
    l->dirty = true;
}

void coverage_told(struct coverage_plan *p, uint32_t list, uint32_t read, uint64_t now)
{
    struct coverage_list *l = &p->list[list];
    if (!l->open)
        return;
    l->began = l->began ? l->began : clock_realtime();
    l->ended = clock_realtime();
    l->seen = now;
    l->reads++;
    l->files_read = l->told = read;
    l->dirty = true;
}

/* The lists to which a read may belong: their loader is near, and has not read the file yet. Idle lists count only if
 * there is no other. */
struct choices {
    struct choice last;
    uint32_t lists;
    bool idle;
};

static void add_choice(struct choices *all, const struct choice *at, bool idle)
{
    if (all->lists > 0 && all->last.plan == at->plan && all->last.list == at->list) {
        all->last = at->distance < all->last.distance ? *at : all->last;
        return;
    }
    if (all->lists > 0 && idle && !all->idle)
        return;
    all->lists = all->idle == idle ? all->lists + 1 : 1;
    all->last = *at;
    all->idle = idle;
}

/* Find them, and record the event at all unread positions of the file. */
static void find_choices(struct coverage *c, uint32_t file, uint64_t now, struct choices *all)
{
    *all = (struct choices){0};
    for (struct coverage_plan *p = c->plans; p; p = p->next) {
        struct course_places places = course_find(p->course, file);
        for (uint32_t i = 0; i < places.count; i++) {
            struct choice at = {.plan = p};
            at.list = course_list(p->course, places.place[i], &at.position);
            struct coverage_list *l = &p->list[at.list];
            if (!l->open || l->state[at.position] & ENTRY_READ)
                continue;
            l->state[at.position] |= ENTRY_EVENT;
            l->dirty = true;
            at.distance = distance_to(p, at.list, at.position);
            if (at.distance <= p->course->span)
                add_choice(all, &at, now > l->seen + IDLE_S * SECOND);
        }
    }
}

static bool has_file(const struct coverage *c, uint32_t file)
{
    for (const struct coverage_plan *p = c->plans; p; p = p->next)
        if (course_has(p->course, file))
            return true;
    return false;
}

/* No list expected this read. Count it for the lists that have already read the file; if no list contains the file, it
 * is a stranger. */
static void note_surplus(struct coverage *c, uint32_t file)
{
    uint32_t first;
    for (struct coverage_plan *p = c->plans; p; p = p->next)
        for (uint32_t list = 0; list < p->course->ranks; list++)
            if (p->list[list].open && list_state(p, list, file, &first) & ENTRY_READ) {
                p->list[list].again++;
                p->list[list].dirty = true;
            }
    if (!has_file(c, file))
        c->recent[c->strangers++ % RECENT] = file;
}

static void begin_read(struct coverage *c, uint32_t file, uint64_t now)
{
    struct choices all;
    find_choices(c, file, now, &all);
    if (all.lists == 1)
        mark_read(&all.last, file, now);
    else if (all.lists == 0)
        note_surplus(c, file);
}

/* A program that maps a file opens it and closes it without a read event. */
static void close_unread(struct coverage *c, uint32_t file)
{
    for (struct coverage_plan *p = c->plans; p; p = p->next) {
        struct course_places places = course_find(p->course, file);
        for (uint32_t i = 0; i < places.count; i++) {
            uint32_t position, list = course_list(p->course, places.place[i], &position);
            struct coverage_list *l = &p->list[list];
            if (!l->open)
                continue;
            l->state[position] |= ENTRY_EVENT;
            l->flags |= FEED_MAPPED;
            l->dirty = true;
        }
    }
}

static unsigned own_closes(const struct coverage *c, uint32_t file)
{
    return c->turn[file] == c->turns ? c->state[file] & FILE_OWN : 0;
}

void coverage_own(struct coverage *c, uint32_t file)
{
    if (file >= c->files)
        return;
    unsigned own = own_closes(c, file);
    c->state[file] = (unsigned char)((c->state[file] & FILE_BUSY) | (own < FILE_OWN ? own + 1 : own));
    c->turn[file] = c->turns;
}

/* A loader's read of a file lasts from the first access to the close. The kernel may merge the feeder's close with the
 * loader's; then the next read counts as the same one. An empty file is closed without an access. */
void coverage_event(struct coverage *c, uint32_t file, enum coverage_event event, uint64_t now)
{
    if (file >= c->files)
        return;
    unsigned char *state = &c->state[file];
    bool busy = *state & FILE_BUSY;
    if (event == COVERAGE_ACCESS) {
        *state |= FILE_BUSY;
        if (!busy)
            begin_read(c, file, now);
    } else if (own_closes(c, file) > 0) {
        --*state;
    } else if (busy) {
        *state &= (unsigned char)~FILE_BUSY;
    } else if (c->rules.size(c->rules.user, file) == 0) {
        begin_read(c, file, now);
    } else {
        close_unread(c, file);
    }
}

/* Stop waiting for closes: the next access of each file counts as another read. */
void coverage_lost(struct coverage *c, uint32_t flag)
{
    memset(c->state, 0, c->files);
    for (struct coverage_plan *p = c->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->course->ranks; i++)
            if (p->list[i].open) {
                p->list[i].flags |= flag;
                p->list[i].dirty = true;
            }
}

/* --- READs that the server has answered --- */

/* A loader waited for this READ. */
static void count_answer(struct coverage_list *l, uint32_t position, const struct feed_answer *a)
{
    unsigned place = a->place < FEED_PLACES ? a->place : FEED_PLACES - 1;
    l->note_reads[place]++;
    l->note_bytes[place] += a->bytes;
    l->dirty = true;
    if (a->fed)
        return;
    if (!(l->state[position] & ENTRY_LATE)) {
        l->state[position] |= ENTRY_LATE;
        l->late++;
        l->late_from[place]++;
    }
    l->late_sum += a->waited;
    if (a->waited > l->late_most)
        l->late_most = a->waited;
}

/* Count a READ for the list whose loader is nearest. If events do not show this read, it only proves an event. */
void coverage_take_answer(struct coverage *c, const struct feed_answer *a, const struct coverage_list *only)
{
    struct choice best = {.distance = UINT32_MAX};
    for (struct coverage_plan *p = c->plans; p; p = p->next) {
        struct course_places places = course_find(p->course, a->file);
        for (uint32_t i = 0; i < places.count; i++) {
            uint32_t position, list = course_list(p->course, places.place[i], &position);
            struct coverage_list *l = &p->list[list];
            if (!l->open || (only && l != only))
                continue;
            if (!a->fed)
                l->state[position] |= ENTRY_EVENT;
            uint32_t distance = distance_to(p, list, position);
            if (distance <= best.distance)
                best = (struct choice){p, list, position, distance};
        }
    }
    if (best.plan)
        count_answer(&best.plan->list[best.list], best.position, a);
}

void coverage_take_notes(struct coverage *c)
{
    struct feed_answer answer;
    uint64_t before = c->lost;
    while (feed_note_take(c->feed, &c->taken, &answer, &c->lost)) {
        if (c->rules.answered)
            c->rules.answered(c->rules.user, &answer);
        coverage_take_answer(c, &answer, NULL);
    }
    if (c->lost > before)
        coverage_lost(c, FEED_OVERFLOWED);
}

/* --- plans come and go --- */

int coverage_create(struct feed *feed, uint32_t files, const struct coverage_rules *rules, struct coverage **coverage)
{
    struct coverage *c = calloc(1, sizeof *c);
    if (!c || !(c->state = calloc(files + 1u, 1)) || !(c->turn = calloc(files + 1u, 1))) {
        coverage_destroy(c);
        return -ENOMEM;
    }
    c->feed = feed;
    c->rules = *rules;
    c->files = files;
    c->taken = atomic_load(&feed->notes);
    *coverage = c;
    return 0;
}

void coverage_destroy(struct coverage *c)
{
    while (c && c->plans)
        coverage_forget(c, c->plans);
    if (c) {
        free(c->state);
        free(c->turn);
    }
    free(c);
}

int coverage_follow(struct coverage *c, const struct feed_course *course, struct coverage_plan **plan)
{
    struct coverage_plan *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->course = course;
    p->next = c->plans;
    c->plans = p;
    *plan = p;
    return 0;
}

void coverage_forget(struct coverage *c, struct coverage_plan *plan)
{
    struct coverage_plan **at = &c->plans;
    while (*at && *at != plan)
        at = &(*at)->next;
    if (!*at)
        return;
    for (uint32_t i = 0; i < plan->course->ranks; i++) {
        if (plan->list[i].open)
            list_report(c, plan, i);
        free(plan->list[i].state);
    }
    *at = plan->next;
    free(plan);
}

void coverage_look(struct coverage *c, uint64_t now)
{
    bool report = now - c->reported >= REPORT_S * SECOND;
    coverage_take_notes(c);
    if (!report)
        return;
    c->reported = now;
    for (struct coverage_plan *p = c->plans; p; p = p->next) {
        list_look_behind(p);
        for (uint32_t i = 0; i < p->course->ranks; i++)
            if (p->list[i].open && p->list[i].dirty)
                list_report(c, p, i);
    }
}

bool coverage_any(const struct coverage *c)
{
    for (const struct coverage_plan *p = c->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->course->ranks; i++)
            if (p->list[i].open)
                return true;
    return false;
}
