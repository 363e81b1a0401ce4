/* What coverage.c has counted, written down: how far each list is, and its report. */
#include "fs/feed/coverage-inside.h"

#include "fs/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- what was not read ---- */

/* May it have been read unseen: by a mapping, or before the watches were there? */
static bool is_unsure(const struct coverage *c, const struct coverage_plan *p, const struct coverage_list *l,
                      uint32_t e)
{
    return c->state[p->file[e]] & STATE_FOREIGN || (p->unwatched && !l->begun_again && e - l->base < l->first_reached);
}

/* A file is reported at its first entry in the list, when none of them was read. */
static bool is_missed(const struct coverage_plan *p, const struct coverage_list *l, uint32_t e)
{
    bool first = true;

    for (int32_t at = entry_first(p, p->file[e]); at != NO_ENTRY; at = p->next[at]) {
        uint32_t other = (uint32_t)at;
        if (p->file[other] != p->file[e] || other < l->base || other - l->base >= l->length)
            continue;
        if (bit_get(p->is_read, other))
            return false;
        first = first && other >= e;
    }
    return first;
}

static void add_missed(const struct coverage *c, const struct coverage_plan *p, const struct coverage_list *l,
                       struct feed_report *r)
{
    for (uint32_t e = l->base; e < l->base + l->length; e++) {
        if (bit_get(p->is_read, e) || !is_missed(p, l, e))
            continue;
        r->unread++;
        r->unsure += is_unsure(c, p, l, e);
        if (r->unread_named < FEED_NAMED)
            r->missed[r->unread_named++] = (struct feed_missed){e - l->base, p->file[e]};
    }
}

/* ---- the report ---- */

static void add_strange(const struct coverage *c, const struct coverage_list *l, struct feed_report *r)
{
    uint64_t from = c->strangers > RECENT ? c->strangers - RECENT : 0;

    for (uint64_t i = l->unplanned_from > from ? l->unplanned_from : from; i < c->strangers; i++)
        if (c->recent[i % RECENT].time > 0 && r->unplanned_named < FEED_NAMED)
            r->unplanned_file[r->unplanned_named++] = c->recent[i % RECENT].file;
    r->unplanned = l->unplanned_from < from ? c->strangers - l->unplanned_from : r->unplanned_named;
}

/* To what a feeder before this one had counted. */
static void add_before(const struct feed_report *b, struct feed_report *r)
{
    r->began = b->began;
    r->read += b->read;
    r->again += b->again;
    r->unplanned += b->unplanned;
    r->late += b->late;
    r->late_sum += b->late_sum;
    r->late_most = b->late_most > r->late_most ? b->late_most : r->late_most;
    for (int i = 0; i < FEED_PLACES; i++) {
        r->late_from[i] += b->late_from[i];
        r->reads[i] += b->reads[i];
        r->read_bytes[i] += b->read_bytes[i];
    }
    r->looks += b->looks;
    r->behind += b->behind;
    r->behind_most = b->behind_most > r->behind_most ? b->behind_most : r->behind_most;
    r->read = r->read > r->samples ? r->samples : r->read;
}

static void fill_report(const struct coverage *c, const struct coverage_plan *p, const struct coverage_list *l,
                        struct feed_report *r)
{
    *r = (struct feed_report){
        .rank = l->rank,
        .flags = l->flags | (l->over ? FEED_ENDED : 0),
        .loaders = p->lists,
        .number = p->number,
        .epoch = p->epoch,
        .began = l->began,
        .ended = l->ended,
        .samples = l->length,
        .bytes = l->bytes,
        .read = l->read,
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
    if (l->over)
        add_missed(c, p, l, r);
    else
        r->unread = l->files - l->files_read;
    r->repeats = r->samples - r->read;
    if (l->before)
        add_before(l->before, r);
    for (uint64_t unread = r->unread; unread > 0 && r->repeats > 0; unread--) /* at least one position each */
        r->repeats--;
}

/* There have been so many since that its place is another one's. */
static bool is_overtaken(const struct coverage *c, const struct coverage_list *l)
{
    return l->report > 0 && atomic_load(&c->feed->reports) >= l->report + FEED_REPORTS;
}

/* A list that is still read gets another place then; the end of one that was left long ago is not written down. */
void list_report(struct coverage *c, struct coverage_plan *p, struct coverage_list *l)
{
    if (is_overtaken(c, l)) {
        if (!l->dirty)
            return;
        l->report = 0;
    }
    struct feed_report *report = l->reads + l->mapped > 0 ? malloc(sizeof *report) : NULL;

    if (!report)
        return;
    if (l->report == 0)
        l->report = atomic_fetch_add(&c->feed->reports, 1) + 1;
    fill_report(c, p, l, report);
    feed_report_put(c->feed, (unsigned)((l->report - 1) % FEED_REPORTS), report);
    l->dirty = false;
    free(report);
}

static uint32_t reached_before(const struct coverage *c, const struct coverage_plan *p, uint32_t rank)
{
    for (int i = 0; i < FEED_RANKS; i++) {
        const struct feed_rank *r = &c->feed->rank[p->slot][i];
        if (atomic_load(&r->number) == p->number && atomic_load(&r->rank) == rank)
            return atomic_load(&r->reached);
    }
    return 0;
}

/* As if it had been read: who reads it again is seen to. */
static void list_pass(struct coverage_plan *p, struct coverage_list *l)
{
    for (uint32_t e = l->base; e < l->base + l->length; e++)
        p->is_read[e / 64] |= UINT64_C(1) << e % 64;
    l->read = l->length;
    l->files_read = l->files;
    l->over = true;
}

/* A feeder that died has left a report of the same list. What was read while none was there is not known. */
void list_go_on(struct coverage *c, struct coverage_plan *p, struct coverage_list *l)
{
    uint64_t end = atomic_load(&c->feed->reports);
    struct feed_report *r = malloc(sizeof *r);

    for (uint64_t i = end; r && i > 0 && i + FEED_REPORTS > end; i--) {
        if (!feed_report_get(c->feed, (unsigned)((i - 1) % FEED_REPORTS), r) || r->number != p->number ||
            r->rank != l->rank || r->samples != l->length)
            continue;
        if (r->flags & FEED_ENDED) {
            list_pass(p, l);
            break;
        }
        l->before = r;
        l->report = i;
        l->resumed = reached_before(c, p, l->rank);
        l->flags |= r->flags | FEED_OVERFLOWED;
        return;
    }
    free(r);
}

/* ---- every second ---- */

static void publish_rank(struct coverage *c, const struct coverage_plan *p, uint32_t i)
{
    struct feed_rank *rank = &c->feed->rank[p->slot][i];
    const struct coverage_list *l = &p->list[i];
    uint32_t before = l->before ? (uint32_t)l->before->read : 0;

    if (atomic_load(&rank->number) != p->number) {
        atomic_store(&rank->number, 0);
        atomic_store(&rank->fed, 0);
        atomic_store(&rank->ahead, 0);
    }
    atomic_store(&rank->rank, l->rank);
    atomic_store(&rank->samples, l->length);
    atomic_store(&rank->reached, coverage_reached(p, i));
    atomic_store(&rank->read, l->read + before < l->length ? l->read + before : l->length);
    atomic_store(&rank->late, (uint32_t)l->late);
    atomic_store(&rank->again, (uint32_t)l->again);
    atomic_store(&rank->flags, l->flags | (l->over ? FEED_ENDED : 0));
    atomic_store(&rank->seen, l->seen);
    atomic_store(&rank->number, p->number);
}

/* Of ranks that are all on their way. */
static void look_who_is_behind(struct coverage_plan *p)
{
    uint32_t last = 0, least = UINT32_MAX, most = 0;

    for (uint32_t i = 0; i < p->lists; i++) {
        uint32_t reached = coverage_reached(p, i);
        if (p->list[i].reads == 0 || p->list[i].over)
            return;
        most = reached > most ? reached : most;
        if (reached < least) {
            least = reached;
            last = i;
        }
    }
    for (uint32_t i = 0; i < p->lists && p->lists > 1; i++)
        p->list[i].looks++;
    if (p->lists < 2 || least == most)
        return;
    p->list[last].behind++;
    if (most - least > p->list[last].behind_most)
        p->list[last].behind_most = most - least;
}

void coverage_look(struct coverage *c, uint64_t now)
{
    bool report = now - c->reported >= REPORT_S * SECOND;
    struct feed_answer answer;

    while (feed_note_take(c->feed, &c->taken, &answer, &c->lost))
        coverage_answered(c, &answer);
    for (struct coverage_plan *p = c->plans; p; p = p->newer) {
        if (report)
            look_who_is_behind(p);
        for (uint32_t i = 0; i < p->lists && i < FEED_RANKS; i++) {
            if (report && p->list[i].dirty)
                list_report(c, p, &p->list[i]);
            publish_rank(c, p, i);
        }
    }
    if (report)
        c->reported = now;
}
