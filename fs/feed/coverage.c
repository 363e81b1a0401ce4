/* Which position a read is of. See coverage.h. */
#include "fs/feed/coverage-inside.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the entries of a plan ---- */

static uint32_t hash_file(const struct coverage_plan *p, uint32_t file)
{
    return (uint32_t)(file * 2654435761u) >> p->shift;
}

static int32_t entry_of_file(const struct coverage_plan *p, int32_t e, uint32_t file)
{
    while (e != NO_ENTRY && p->file[e] != file)
        e = p->next[e];
    return e;
}

int32_t entry_first(const struct coverage_plan *p, uint32_t file)
{
    return entry_of_file(p, p->first[hash_file(p, file)], file);
}

static int32_t entry_next(const struct coverage_plan *p, int32_t e)
{
    return entry_of_file(p, p->next[e], p->file[e]);
}

struct coverage_list *list_of(struct coverage_plan *p, uint32_t entry)
{
    uint32_t low = 0, high = p->lists;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (p->list[middle].base <= entry)
            low = middle;
        else
            high = middle;
    }
    return &p->list[low];
}

static bool list_has(const struct coverage_list *l, int32_t entry)
{
    return (uint32_t)entry >= l->base && (uint32_t)entry - l->base < l->length;
}

/* Has any entry of the file been read, in this list or (NULL) in any? */
static bool file_is_read(const struct coverage_plan *p, uint32_t file, const struct coverage_list *list)
{
    for (int32_t e = entry_first(p, file); e != NO_ENTRY; e = entry_next(p, e))
        if ((!list || list_has(list, e)) && bit_get(p->is_read, (uint32_t)e))
            return true;
    return false;
}

static void plan_free(struct coverage_plan *p)
{
    for (uint32_t i = 0; p && p->list && i < p->lists; i++)
        free(p->list[i].before);
    if (p) {
        free(p->list);
        free(p->first);
        free(p->next);
        free(p->is_read);
        free(p->is_late);
    }
    free(p);
}

static int plan_reserve(struct coverage_plan *p, const struct coverage_lists *lists)
{
    uint32_t entries = lists->start[lists->ranks];
    unsigned bits = 4;

    if (entries > INT32_MAX)
        return -EFBIG;
    while (bits < 31 && UINT64_C(1) << bits < entries)
        bits++;
    p->entries = entries;
    p->shift = 32 - bits;
    p->file = lists->file;
    p->list = calloc(lists->ranks + 1, sizeof *p->list);
    p->next = calloc(entries + 1, sizeof *p->next);
    p->first = malloc((sizeof *p->first) << bits);
    p->is_read = calloc(entries / 64 + 1, sizeof *p->is_read);
    p->is_late = calloc(entries / 64 + 1, sizeof *p->is_late);
    if (!p->list || !p->next || !p->first || !p->is_read || !p->is_late)
        return -ENOMEM;
    memset(p->first, 0xff, (sizeof *p->first) << bits); /* NO_ENTRY */
    return 0;
}

/* In how many lists each file stands, and -E2BIG: one stands in them so often that to look for each of its reads among
 * its entries would take too long. */
static int count_files(const struct coverage *c, struct coverage_plan *p)
{
    struct counted_file {
        uint32_t entries, list; /* the last list it was found in, from 1 */
    } *counted = calloc(c->files + 1ul, sizeof *counted);
    int error = counted ? 0 : -ENOMEM;

    for (uint32_t i = 0; !error && i < p->lists; i++)
        for (uint32_t e = p->list[i].base; !error && e < p->list[i].base + p->list[i].length; e++) {
            struct counted_file *f = &counted[p->file[e] < c->files ? p->file[e] : c->files];
            p->list[i].files += f->list != i + 1;
            f->list = i + 1;
            if (++f->entries > ENTRIES_MOST)
                error = -E2BIG;
        }
    free(counted);
    return error;
}

static void plan_fill(struct coverage_plan *p, const struct coverage_lists *lists)
{
    for (uint32_t i = 0; i < lists->ranks; i++) {
        struct coverage_list *l = &p->list[i];
        *l = (struct coverage_list){.rank = lists->rank[i],
                                    .base = lists->start[i],
                                    .length = lists->start[i + 1] - lists->start[i],
                                    .flags = lists->flags};
        for (uint32_t e = l->base; e < l->base + l->length; e++)
            l->bytes += lists->size(lists->user, p->file[e]);
    }
    p->lists = lists->ranks;
    for (uint32_t e = p->entries; e-- > 0;) {
        int32_t *first = &p->first[hash_file(p, p->file[e])];
        p->next[e] = *first;
        *first = (int32_t)e;
    }
}

/* ---- where a loader is ---- */

static int by_position(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x < y) - (x > y);
}

/* Behind the third of the last eight reads, the farthest first: workers read batches beside each other, and what two
 * strays read says nothing. */
static uint32_t list_reached(const struct coverage_list *l)
{
    uint32_t last[LATEST], n = l->reads < LATEST ? (uint32_t)l->reads : LATEST;

    if (l->read == l->length)
        return l->length;
    if (n < STRAYS && l->resumed > 0)
        return l->resumed;
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        last[i] = l->latest[(l->reads - 1 - i) % AFRESH];
    qsort(last, n, sizeof *last, by_position);
    return last[n < STRAYS ? n - 1 : STRAYS - 1] + 1;
}

/* ---- reads ---- */

static uint32_t distance_to(const struct coverage_list *l, int32_t e)
{
    uint32_t position = (uint32_t)e - l->base;
    uint32_t reached = l->over ? (uint32_t)l->again_since : list_reached(l); /* who reads it again begins anew */

    return position > reached ? position - reached : reached - position;
}

struct choice {
    struct coverage_plan *plan;
    struct coverage_list *list;
    int32_t entry;
    uint32_t distance;
};

/* Near its loader the older plan's goes first: the end of an epoch is read before the beginning of the next, however
 * near that is. Unless that has begun. */
static bool is_better(const struct choice *a, const struct choice *than)
{
    bool near = a->distance < NEAR, other = than->distance < NEAR;

    if (near && other && a->plan != than->plan)
        return than->list->others >= LATEST;
    return a->distance < than->distance;
}

/* Of all entries of the file the nearest one to where its list's loader is. */
static bool choose_entry(struct coverage *c, uint32_t file, bool unread_only, struct choice *best)
{
    best->entry = NO_ENTRY;
    for (struct coverage_plan *p = c->plans; p; p = p->newer)
        for (int32_t e = entry_first(p, file); e != NO_ENTRY; e = entry_next(p, e)) {
            struct coverage_list *l = list_of(p, (uint32_t)e);
            if (unread_only && (bit_get(p->is_read, (uint32_t)e) || l->over))
                continue;
            struct choice at = {p, l, e, distance_to(l, e)};
            if (best->entry == NO_ENTRY || is_better(&at, best))
                *best = at;
        }
    return best->entry != NO_ENTRY;
}

static void list_start(struct coverage *c, struct coverage_list *l)
{
    l->began = clock_realtime();
    l->unplanned_from = c->strangers;
    l->lost_from = c->lost;
}

static void mark_read(struct coverage_plan *p, struct coverage_list *l, uint32_t position)
{
    uint32_t entry = l->base + position;

    if (bit_get(p->is_read, entry)) {
        l->again++;
        l->again_since += l->over;
    } else {
        l->files_read += !file_is_read(p, p->file[entry], l);
        p->is_read[entry / 64] |= UINT64_C(1) << entry % 64;
        l->read++;
    }
    l->latest[l->reads++ % AFRESH] = position;
}

/* As it was before anything was read of it. */
static void list_clear(struct coverage_plan *p, struct coverage_list *l)
{
    struct coverage_list fresh = {.rank = l->rank,
                                  .length = l->length,
                                  .base = l->base,
                                  .flags = l->flags & (FEED_PARTLY | FEED_GUESSED),
                                  .bytes = l->bytes,
                                  .files = l->files,
                                  .report = l->report};
    *l = fresh;
    for (uint32_t e = l->base; e < l->base + l->length; e++) {
        p->is_read[e / 64] &= ~(UINT64_C(1) << e % 64);
        p->is_late[e / 64] &= ~(UINT64_C(1) << e % 64);
    }
}

/* Its files are read all over again: so the last reads were not the old ones again, but the first ones of these. */
static void list_begin_again(struct coverage *c, struct coverage_plan *p, struct coverage_list *l)
{
    struct coverage_list old = *l;
    uint64_t since = old.again_since;

    l->again -= since;
    list_report(c, p, l);
    free(l->before);
    list_clear(p, l);
    l->begun_again = true;
    l->report = 0;
    list_start(c, l);
    for (; since > 0; since--)
        mark_read(p, l, old.latest[(old.reads - since) % AFRESH]);
}

static void mark_unread(struct coverage_plan *p, struct coverage_list *l, uint32_t position)
{
    uint32_t entry = l->base + position;

    p->is_read[entry / 64] &= ~(UINT64_C(1) << entry % 64);
    l->read--;
    l->files_read -= !file_is_read(p, p->file[entry], l);
}

/* Reads after its last sure one were not of its end, but of the beginning of a newer list. */
static void leave_list(struct coverage_plan *p, struct coverage_list *l)
{
    l->over = l->dirty = true;
    for (uint32_t i = 0; i < l->borrows && i < BORROWED; i++) {
        const struct borrowed *b = &l->borrowed[i];
        if (bit_get(b->plan->is_read, b->list->base + b->position))
            continue;
        mark_unread(p, l, b->own);
        mark_read(b->plan, b->list, b->position);
        b->list->dirty = true;
    }
    l->borrows = 0;
}

/* A loader leaves a list when it is well into one of the same rank that was planned later. */
static void leave_older(struct coverage *c, const struct coverage_plan *newer, const struct coverage_list *into)
{
    for (struct coverage_plan *p = c->plans; p && p != newer; p = p->newer)
        for (uint32_t i = 0; i < p->lists; i++) {
            struct coverage_list *l = &p->list[i];
            if (l->rank == into->rank && (!l->over || l->borrows > 0) && l->reads + l->mapped > 0 &&
                ++l->others >= list_few(l))
                leave_list(p, l);
        }
}

static void note_borrowed(const struct choice *at, uint32_t file)
{
    struct coverage_list *l = at->list;
    bool sure = true;

    for (struct coverage_plan *p = at->plan->newer; p; p = p->newer)
        for (int32_t e = entry_first(p, file); e != NO_ENTRY; e = entry_next(p, e)) {
            struct coverage_list *other = list_of(p, (uint32_t)e);
            if (bit_get(p->is_read, (uint32_t)e) || other->over || distance_to(other, e) >= NEAR)
                continue;
            sure = false;
            l->borrowed[l->borrows++ % BORROWED] =
                (struct borrowed){p, other, (uint32_t)at->entry - l->base, (uint32_t)e - other->base};
        }
    if (!sure)
        return;
    l->borrows = 0;
    l->others -= l->others < 4 ? l->others : 4;
}

static void count_read(struct coverage *c, const struct choice *at, uint32_t file, uint64_t now)
{
    struct coverage_list *l = at->list;

    if (l->reads == 0 && l->mapped == 0)
        list_start(c, l);
    mark_read(at->plan, l, (uint32_t)at->entry - l->base);
    note_borrowed(at, file);
    if (l->reads == LATEST)
        l->first_reached = list_reached(l);
    l->seen = now;
    l->ended = clock_realtime();
    l->dirty = true;
    if (l->read == l->length)
        l->over = true;
    leave_older(c, at->plan, l);
}

static void note_strange(struct coverage *c, uint32_t file, uint64_t now)
{
    c->recent[c->strangers++ % RECENT] = (struct strange){file, now};
}

/* Not `sure`: it may be the read that began before. */
static bool begin_read(struct coverage *c, uint32_t file, bool sure, uint64_t now, struct coverage_hit *hit)
{
    struct choice at;
    bool fresh = choose_entry(c, file, true, &at);

    if (fresh && !sure && file_is_read(at.plan, file, NULL))
        return false;
    if (!fresh && (!sure || !choose_entry(c, file, false, &at)))
        return false;
    if (!fresh && !bit_get(at.plan->is_read, (uint32_t)at.entry)) {
        note_strange(c, file, now); /* of an epoch that has been left */
        return false;
    }
    if (!fresh && at.list->over && at.list->again_since + 1 >= list_few(at.list))
        list_begin_again(c, at.plan, at.list);
    count_read(c, &at, file, now);
    if (hit)
        *hit = (struct coverage_hit){at.plan, (uint32_t)(at.list - at.plan->list), (uint32_t)at.entry - at.list->base};
    return true;
}

static bool is_planned(const struct coverage *c, uint32_t file)
{
    for (const struct coverage_plan *p = c->plans; p; p = p->newer)
        if (entry_first(p, file) != NO_ENTRY)
            return true;
    return false;
}

static bool access_file(struct coverage *c, uint32_t file, uint64_t now, struct coverage_hit *hit)
{
    unsigned char *state = &c->state[file];
    bool busy = *state & STATE_BUSY, doubt = *state & STATE_DOUBT;

    *state = (unsigned char)((*state & STATE_OWN) | STATE_BUSY);
    if (busy && !doubt)
        return false;
    if (is_planned(c, file))
        return begin_read(c, file, !busy, now, hit);
    if (!busy)
        note_strange(c, file, now);
    return false;
}

static void close_unread(struct coverage *c, uint32_t file, uint64_t now)
{
    struct choice at;

    c->state[file] |= STATE_FOREIGN;
    if (!choose_entry(c, file, true, &at))
        return;
    struct coverage_list *l = at.list;
    if (l->reads == 0 && l->mapped == 0)
        list_start(c, l);
    if (++l->mapped >= list_few(l) / 4 + 1 && l->mapped > l->read / 16)
        l->flags |= FEED_MAPPED;
    l->seen = now;
    l->ended = clock_realtime();
    l->dirty = true;
}

bool coverage_event(struct coverage *c, uint32_t file, enum coverage_event event, uint64_t now,
                    struct coverage_hit *hit)
{
    if (file >= c->files)
        return false;
    if (event == COVERAGE_ACCESS)
        return access_file(c, file, now, hit);
    unsigned char *state = &c->state[file], own = *state & STATE_OWN;
    if (own > 0)
        *state = (unsigned char)((*state - 1) | (*state & STATE_BUSY ? STATE_DOUBT : 0));
    else if (*state & STATE_BUSY)
        *state = 0;
    else if (!(*state & STATE_FOREIGN))
        close_unread(c, file, now);
    return false;
}

void coverage_own(struct coverage *c, uint32_t file)
{
    if (file < c->files && (c->state[file] & STATE_OWN) < STATE_OWN)
        c->state[file]++;
}

/* A READ of a loader is one that it waited for. */
void coverage_answered(struct coverage *c, const struct feed_answer *a)
{
    unsigned place = a->place < FEED_PLACES ? a->place : FEED_PLACES - 1;
    struct choice at;

    if (!choose_entry(c, a->file, false, &at))
        return;
    struct coverage_list *l = at.list;
    l->note_reads[place]++;
    l->note_bytes[place] += a->bytes;
    l->dirty = true;
    if (a->fed)
        return;
    if (!bit_get(at.plan->is_late, (uint32_t)at.entry)) {
        at.plan->is_late[at.entry / 64] |= UINT64_C(1) << at.entry % 64;
        l->late++;
        l->late_from[place]++;
    }
    l->late_sum += a->waited;
    if (a->waited > l->late_most)
        l->late_most = a->waited;
}

void coverage_lost(struct coverage *c, uint32_t flag)
{
    for (struct coverage_plan *p = c->plans; p; p = p->newer)
        for (uint32_t i = 0; i < p->lists; i++)
            if (!p->list[i].over) {
                p->list[i].flags |= flag;
                p->list[i].dirty = true;
            }
}

uint32_t coverage_reached(const struct coverage_plan *p, uint32_t list)
{
    return list_reached(&p->list[list]);
}

bool coverage_is_read(const struct coverage_plan *p, uint32_t list, uint32_t position)
{
    return bit_get(p->is_read, p->list[list].base + position);
}

uint64_t coverage_reads(const struct coverage_plan *p, uint32_t list)
{
    return p->list[list].reads;
}

/* ---- plans come and go ---- */

int coverage_create(struct feed *feed, uint32_t files, struct coverage **coverage)
{
    struct coverage *c = calloc(1, sizeof *c);

    if (!c || !(c->state = calloc(files + 1u, 1))) {
        free(c);
        return -ENOMEM;
    }
    c->feed = feed;
    c->files = files;
    c->taken = atomic_load(&feed->notes);
    *coverage = c;
    return 0;
}

void coverage_destroy(struct coverage *c)
{
    while (c && c->plans) {
        struct coverage_plan *p = c->plans;
        c->plans = p->newer;
        plan_free(p);
    }
    if (c)
        free(c->state);
    free(c);
}

/* Reads seen between the asking and now were strange then. */
static void take_recent(struct coverage *c, uint64_t since)
{
    uint64_t from = c->strangers > RECENT ? c->strangers - RECENT : 0;

    for (uint64_t i = from; i < c->strangers; i++) {
        struct strange *s = &c->recent[i % RECENT];
        if (s->time >= since && s->time > 0 && begin_read(c, s->file, true, s->time, NULL))
            s->time = 0;
    }
}

int coverage_begin(struct coverage *c, const struct coverage_lists *lists, struct coverage_plan **plan)
{
    struct coverage_plan *p = calloc(1, sizeof *p), **end = &c->plans;
    int error = p ? plan_reserve(p, lists) : -ENOMEM;

    if (!error) {
        plan_fill(p, lists);
        error = count_files(c, p);
    }
    if (error) {
        plan_free(p);
        return error;
    }
    p->number = lists->number;
    p->epoch = lists->epoch;
    p->slot = lists->slot % FEED_PLANS;
    p->unwatched = lists->unwatched;
    for (uint32_t i = 0; i < p->lists; i++)
        list_go_on(c, p, &p->list[i]);
    while (*end && (*end)->number < p->number)
        end = &(*end)->newer;
    p->newer = *end;
    *end = p;
    if (lists->asked > 0)
        take_recent(c, lists->asked);
    *plan = p;
    return 0;
}

void coverage_forget(struct coverage_plan *plan)
{
    for (uint32_t i = 0; i < plan->lists; i++)
        if (plan->list[i].reads <= LITTLE && !plan->list[i].before)
            list_clear(plan, &plan->list[i]);
}

void coverage_confirm(struct coverage_plan *plan)
{
    for (uint32_t i = 0; i < plan->lists; i++)
        plan->list[i].flags &= ~(uint32_t)FEED_GUESSED;
}

void coverage_end(struct coverage *c, struct coverage_plan *plan)
{
    struct coverage_plan **at = &c->plans;

    while (*at && *at != plan)
        at = &(*at)->newer;
    if (!*at)
        return;
    for (struct coverage_plan *p = c->plans; p && p != plan; p = p->newer)
        for (uint32_t i = 0; i < p->lists; i++)
            p->list[i].borrows = 0;
    for (uint32_t i = 0; i < plan->lists; i++) {
        plan->list[i].over = true;
        list_report(c, plan, &plan->list[i]);
    }
    *at = plan->newer;
    plan_free(plan);
}
