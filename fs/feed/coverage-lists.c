/* Begin and end of lists. See coverage.h. */
#include "fs/feed/coverage-inside.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>

/* Apply the server's notes of reads since the request of the list, which were taken before the list was known. */
static void take_notes_since(struct coverage *c, struct coverage_list *l, uint64_t notes)
{
    struct feed_answer answer;
    uint64_t lost = 0;
    while (notes < c->taken && feed_note_take(c->feed, &notes, &answer, &lost))
        coverage_take_answer(c, &answer, l);
    if (lost > 0)
        l->flags |= FEED_OVERFLOWED;
}

/* Count its files, each once, and the bytes of all positions. A read that is already in progress belongs to another
 * list. */
static void count_files(struct coverage *c, const struct coverage_plan *p, uint32_t list, struct coverage_list *l)
{
    const struct feed_course *course = p->course;
    uint32_t last = UINT32_MAX;
    if (course->records) {
        l->files = list_length(p, list);
        for (uint32_t i = 0; i < l->files; i++)
            l->bytes += samples_length(course->records, list_file(p, list, i));
        return;
    }
    for (uint32_t i = 0; i < course->start[course->ranks]; i++) {
        uint32_t place = course->sorted[i], file = course->file[place];
        if (place < course->start[list] || place >= course->start[list + 1])
            continue;
        l->files += file != last;
        l->bytes += c->rules.size(c->rules.user, file);
        last = file;
        if (file < c->files)
            c->state[file] &= (unsigned char)~FILE_BUSY;
    }
}

/* What an earlier feeder saw is in its report. */
static void list_resume(const struct coverage *c, const struct coverage_plan *p, uint32_t list, struct coverage_list *l)
{
    const struct feed_rank *r = &c->feed->rank[p->course->slot][list];
    if (p->course->slot < 0 || atomic_load(&r->number) != p->course->number || atomic_load(&r->asked) != l->asked)
        return;
    l->resumed = atomic_load(&r->reached);
    l->report = list_find_before(c, p, list, l->asked, &l->read_before);
    l->flags |= FEED_UNWATCHED;
}

int coverage_begin(struct coverage *c, struct coverage_plan *p, uint32_t list, const struct feed_asking *asking,
                   uint32_t flags)
{
    struct coverage_list *l = &p->list[list];
    uint64_t now = clock_now();
    struct coverage_list fresh = {.asked = asking->asked, .open = true, .flags = flags, .seen = now, .dirty = true};
    fresh.state = calloc(list_length(p, list) + 1ul, 1);
    if (!fresh.state)
        return -ENOMEM;
    coverage_take_notes(c);
    count_files(c, p, list, &fresh);
    if (now - asking->since > STALLED_S * SECOND)
        fresh.flags |= FEED_STALLED;
    fresh.strange_from = c->strangers;
    fresh.lost_from = c->lost;
    list_resume(c, p, list, &fresh);
    fresh.report = fresh.report ? fresh.report : l->report; /* it replaces the previous report of this list */
    if (fresh.report == 0)
        fresh.report = atomic_fetch_add(&c->feed->reports, 1) + 1;
    free(l->state);
    *l = fresh;
    take_notes_since(c, l, asking->notes);
    list_report(c, p, list);
    return 0;
}

void coverage_watched(struct coverage_plan *p, uint32_t list)
{
    if (p->list[list].open && p->list[list].resumed == 0 && p->list[list].read_before == 0)
        p->list[list].flags &= ~(uint32_t)FEED_UNWATCHED;
}

uint64_t coverage_begun(const struct coverage_plan *p, uint32_t list)
{
    return p->list[list].asked;
}

void coverage_end(struct coverage_plan *p, uint32_t list, const struct feed_asking *asking)
{
    struct coverage_list *l = &p->list[list];
    if (!l->open || l->ending)
        return;
    l->ending = asking->ended;
    l->until = asking->until;
    l->stopped = asking->stopped != 0;
}

void coverage_arm(struct coverage *c)
{
    for (struct coverage_plan *p = c->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->course->ranks; i++)
            p->list[i].armed = p->list[i].open && p->list[i].ending;
}

static void list_close(struct coverage *c, struct coverage_plan *p, uint32_t list, uint64_t now)
{
    struct coverage_list *l = &p->list[list];
    if (now - l->until > FEED_END_MS * MILLISECOND)
        l->flags |= FEED_STALLED;
    l->flags |= FEED_ENDED | FEED_LEFT | (l->stopped ? FEED_STOPPED : 0);
    l->closed = l->ending;
    list_report(c, p, list);
    l->open = false;
}

bool coverage_settle(struct coverage *c, uint64_t now)
{
    bool any = false;
    c->turns++; /* all earlier closes by the feeder were seen, or merged with others */
    for (struct coverage_plan *p = c->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->course->ranks; i++)
            if (p->list[i].open && p->list[i].armed) {
                coverage_take_notes(c);
                list_close(c, p, i, now);
                any = true;
            }
    return any;
}
