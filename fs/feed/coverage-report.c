/* Publishes what coverage.c has counted: how far each list is, and its report. */
#include "fs/feed/coverage-inside.h"

#include <stdlib.h>
#include <string.h>

/* --- what was not read --- */

/* Can any file be proved unread? If no read was seen at all, reads may be invisible: another filesystem on top of this
 * one hides them. */
static bool is_provable(const struct coverage_list *l)
{
    const uint32_t doubts = FEED_OVERFLOWED | FEED_MAPPED | FEED_PARTLY | FEED_UNWATCHED | FEED_STOPPED;
    return l->flags & FEED_ENDED && !(l->flags & doubts) && l->files_read > 0;
}

/* Record a file at its first position in the list. */
static void add_missed(const struct coverage *c, const struct coverage_plan *p, uint32_t list, struct feed_report *r)
{
    uint32_t tried = 0, first;
    for (uint32_t i = 0; i < list_length(p, list) && tried < PROVED_MOST; i++) {
        uint32_t file = list_file(p, list, i);
        if (list_state(p, list, file, &first) & (ENTRY_EVENT | ENTRY_READ) || first != i)
            continue;
        tried++;
        if (!c->rules.unopened(c->rules.user, file))
            continue;
        r->unread++;
        if (r->unread_named < FEED_NAMED)
            r->missed[r->unread_named++] = (struct feed_missed){i, file};
    }
}

/* --- the report --- */

static void add_strange(const struct coverage *c, const struct coverage_list *l, struct feed_report *r)
{
    uint64_t from = c->strangers > RECENT ? c->strangers - RECENT : 0;
    r->unplanned = c->strangers - l->strange_from;
    for (uint64_t i = l->strange_from > from ? l->strange_from : from; i < c->strangers; i++)
        if (r->unplanned_named < FEED_NAMED)
            r->unplanned_file[r->unplanned_named++] = c->recent[i % RECENT];
}

static void fill_report(const struct coverage *c, const struct coverage_plan *p, uint32_t list, struct feed_report *r)
{
    const struct coverage_list *l = &p->list[list];
    *r = (struct feed_report){
        .rank = p->course->rank[list],
        .flags = l->flags,
        .loaders = p->course->ranks,
        .number = p->course->number,
        .epoch = p->course->epoch,
        .asked = l->asked,
        .began = l->began,
        .ended = l->ended,
        .samples = list_length(p, list),
        .bytes = l->bytes,
        .read = l->files_read > l->read_before ? l->files_read : l->read_before,
        .again = l->again,
        .late = l->late,
        .late_sum = l->late_sum,
        .late_most = l->late_most,
        .looks = l->looks,
        .behind = l->behind,
        .behind_most = l->behind_most,
        .lost = c->lost - l->lost_from,
    };
    memcpy(r->late_from, l->late_from, sizeof r->late_from);
    memcpy(r->reads, l->note_reads, sizeof r->reads);
    memcpy(r->read_bytes, l->note_bytes, sizeof r->read_bytes);
    add_strange(c, l, r);
    if (is_provable(l))
        add_missed(c, p, list, r);
    r->unsure = l->files > r->read + r->unread ? l->files - r->read - r->unread : 0;
}

/* After many other reports, the place of this one was reused; then it gets a new one. */
void list_report(struct coverage *c, struct coverage_plan *p, uint32_t list)
{
    struct coverage_list *l = &p->list[list];
    struct feed_report *report = malloc(sizeof *report);
    if (!report)
        return;
    if (atomic_load(&c->feed->reports) >= l->report + FEED_REPORTS)
        l->report = atomic_fetch_add(&c->feed->reports, 1) + 1;
    fill_report(c, p, list, report);
    feed_report_put(c->feed, (unsigned)((l->report - 1) % FEED_REPORTS), report);
    l->dirty = false;
    free(report);
}

uint64_t list_find_before(const struct coverage *c, const struct coverage_plan *p, uint32_t list, uint64_t asked,
                          uint64_t *read)
{
    uint64_t end = atomic_load(&c->feed->reports), found = 0;
    struct feed_report *r = malloc(sizeof *r);
    for (uint64_t i = end; r && !found && i > 0 && i + FEED_REPORTS > end; i--)
        if (feed_report_get(c->feed, (unsigned)((i - 1) % FEED_REPORTS), r) && r->rank == p->course->rank[list] &&
            r->asked == asked && r->samples == list_length(p, list) && r->read <= r->samples) {
            *read = r->read;
            found = i;
        }
    free(r);
    return found;
}

/* --- every second --- */

bool coverage_publish(const struct coverage_plan *p, uint32_t list, struct feed_rank *rank)
{
    const struct coverage_list *l = &p->list[list];
    uint64_t read = l->files_read > l->read_before ? l->files_read : l->read_before;
    if (!l->asked)
        return false;
    atomic_store(&rank->reached, list_reached(l, list_length(p, list)));
    atomic_store(&rank->read, l->files_read == l->files ? list_length(p, list) : (uint32_t)read);
    atomic_store(&rank->late, (uint32_t)l->late);
    atomic_store(&rank->again, (uint32_t)l->again);
    atomic_store(&rank->flags, l->flags);
    atomic_store(&rank->seen, l->reads > 0 ? l->seen : 0);
    atomic_store(&rank->asked, l->asked);
    atomic_store(&rank->closed, l->closed);
    return true;
}

/* Only ranks that are in mid-epoch count. */
void list_look_behind(struct coverage_plan *p)
{
    uint32_t last = 0, least = UINT32_MAX, most = 0, ranks = p->course->ranks;
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t reached = list_reached(&p->list[i], list_length(p, i));
        if (p->list[i].reads == 0 || !p->list[i].open)
            return;
        most = reached > most ? reached : most;
        if (reached < least) {
            least = reached;
            last = i;
        }
    }
    for (uint32_t i = 0; i < ranks && ranks > 1; i++)
        p->list[i].looks++;
    if (ranks < 2 || least == most)
        return;
    p->list[last].behind++;
    if (most - least > p->list[last].behind_most)
        p->list[last].behind_most = most - least;
}
