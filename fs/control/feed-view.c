/* The feeder's part of `status`; and `epochs`: its reports, the oldest first. */
#include "fs/control/feed-view.h"

#include "fs/control/control-private.h"
#include "fs/control/epoch-coverage.h"
#include "fs/control/feed-table.h"
#include "fs/control/texts.h"
#include "fs/control/world-view.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/wire/feed.h"

#include <errno.h>
#include <stdlib.h>

enum { NAMES_MOST = 4 << 20 }; /* maximum bytes of names in `epochs` */

/* "known": all reads were seen; "partly": not in all directories; "unknown". */
static const char *coverage_of(uint32_t flags)
{
    if (flags & (FEED_OVERFLOWED | FEED_MAPPED | FEED_UNWATCHED | FEED_STALLED))
        return "unknown";
    return flags & FEED_PARTLY ? "partly" : "known";
}

/* --- status --- */

/* The feeder's order may differ from the plan's. */
const struct feed_rank *feed_view_rank(const struct feed *feed, unsigned slot, uint64_t number, uint32_t rank)
{
    for (int i = 0; i < FEED_RANKS; i++) {
        const struct feed_rank *r = &feed->rank[slot][i];
        if (atomic_load(&r->number) == number && atomic_load(&r->rank) == rank)
            return r;
    }
    return NULL;
}

static void add_rank(struct json *j, const struct feed_rank *r)
{
    uint64_t seen = atomic_load(&r->seen), now = clock_now();
    uint32_t flags = atomic_load(&r->flags);
    json_begin_object(j, NULL);
    json_uints(j, {"rank", atomic_load(&r->rank)}, {"samples", atomic_load(&r->samples)},
               {"reached", atomic_load(&r->reached)}, {"fed", atomic_load(&r->fed)}, {"read", atomic_load(&r->read)},
               {"late", atomic_load(&r->late)}, {"again", atomic_load(&r->again)}, {"ahead", atomic_load(&r->ahead)});
    if (seen > 0)
        json_uint(j, "idle_ms", now > seen ? (now - seen) / MILLISECOND : 0);
    json_string(j, "coverage", coverage_of(flags));
    json_bool(j, "ended", flags & FEED_ENDED);
    json_end_object(j);
}

static void add_plan(struct json *j, const struct feed *feed, unsigned slot, const struct feed_plan *plan)
{
    uint32_t ranks = plan->ranks < FEED_RANKS ? plan->ranks : FEED_RANKS;
    json_begin_object(j, NULL);
    json_uints(j, {"number", plan->number}, {"epoch", plan->epoch});
    json_begin_array(j, "ranks");
    for (uint32_t i = 0; i < ranks; i++) {
        const struct feed_rank *r = feed_view_rank(feed, slot, plan->number, plan->rank[i]);
        if (r)
            add_rank(j, r);
    }
    json_end_array(j);
    json_bool(j, "guessed", plan->guessed != 0);
    json_end_object(j);
}

static int by_number(const void *a, const void *b)
{
    const struct feed_plan *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static void add_plans(struct json *j, const struct feed *feed)
{
    struct {
        struct feed_plan plan;
        unsigned slot;
    } *all = calloc(FEED_PLANS, sizeof *all);
    unsigned n = 0;
    json_begin_array(j, "plans");
    for (unsigned slot = 0; all && slot < FEED_PLANS; slot++)
        if (feed_plan_get(feed, slot, &all[n].plan) && all[n].plan.number != 0)
            all[n++].slot = slot;
    if (n > 0)
        qsort(all, n, sizeof *all, by_number);
    for (unsigned i = 0; i < n; i++)
        add_plan(j, feed, all[i].slot, &all[i].plan);
    json_end_array(j);
    free(all);
}

static void add_foresight(struct json *j, const struct feed *feed)
{
    static const char *const states[] = {NULL, "reading", "searching", "following", "lost"};
    uint32_t state = atomic_load(&feed->foresight);
    if (state == FORESIGHT_NONE || state >= sizeof states / sizeof *states)
        return;
    json_begin_object(j, "sampler");
    json_string(j, "state", states[state]);
    if (state == FORESIGHT_FOLLOWING)
        json_uint(j, "epoch", atomic_load(&feed->foreseen));
    json_uints(j, {"wrong", atomic_load(&feed->wrong)}, {"fitting_ranks", atomic_load(&feed->fitting_ranks)},
               {"fitting_batch", atomic_load(&feed->fitting_batch)});
    json_end_object(j);
}

void feed_view_add_status(struct json *j, const struct control *control)
{
    const struct feed *feed = control->config.feed;
    if (!feed)
        return;
    json_begin_object(j, "feed");
    json_uints(j, {"feeder", atomic_load(&feed->feeder)}, {"deaths", atomic_load(&feed->deaths)});
    json_bool(j, "off", atomic_load(&feed->off) != 0);
    json_bool(j, "paused", atomic_load(&feed->feeder) != 0 && atomic_load(&feed->paused) != 0);
    json_uints(j, {"window", atomic_load(&feed->window)}, {"ahead", atomic_load(&feed->ahead)},
               {"waiting", atomic_load(&feed->served.waits.all)});
    add_foresight(j, feed);
    add_plans(j, feed);
    json_end_object(j);
}

/* --- epochs --- */

/* Length of the path, or -1. */
static long find_path(const struct control *control, uint32_t file, char path[CATALOG_PATH_MAX])
{
    const struct catalog *c = control_filled(control) ? control->config.catalog : NULL;
    return c && file < catalog_files(c) ? catalog_path(c, catalog_file_ino(c, file), path, CATALOG_PATH_MAX) : -1;
}

static void add_path(struct json *j, const struct control *control, const char *key, uint32_t file)
{
    char path[CATALOG_PATH_MAX];
    json_string(j, key, find_path(control, file, path) >= 0 ? path : NULL);
}

static uint32_t names_of(uint32_t named)
{
    return named < FEED_NAMED ? named : FEED_NAMED;
}

/* Approximate length of the names in a report. */
static size_t measure_names(const struct control *control, const struct feed_report *r)
{
    enum { AROUND = 64 };
    char path[CATALOG_PATH_MAX];
    size_t size = 0;
    for (uint32_t i = 0; i < names_of(r->unread_named); i++)
        size += AROUND + (size_t)(find_path(control, r->missed[i].file, path) + 1);
    for (uint32_t i = 0; i < names_of(r->unplanned_named); i++)
        size += AROUND + (size_t)(find_path(control, r->unplanned_file[i], path) + 1);
    return size;
}

static void add_missed(struct json *j, const struct control *control, const struct feed_report *r)
{
    json_begin_array(j, "missed");
    for (uint32_t i = 0; i < names_of(r->unread_named); i++) {
        json_begin_object(j, NULL);
        json_uint(j, "position", r->missed[i].position);
        add_path(j, control, "path", r->missed[i].file);
        json_end_object(j);
    }
    json_end_array(j);
    json_begin_array(j, "strange");
    for (uint32_t i = 0; i < names_of(r->unplanned_named); i++)
        add_path(j, control, NULL, r->unplanned_file[i]);
    json_end_array(j);
}

static void add_flags(struct json *j, uint32_t flags)
{
    static const char *const names[] = {"overflowed", "mapped", "partly", "unwatched", "stalled", "ended", "stopped"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        json_bool(j, names[i], flags >> i & 1);
}

/* Only for lists whose loader has reported the end. If a file was read more often than planned, other programs read the
 * same files, and perhaps those that the loader did not. */
static const char *verdict_of(const struct feed_report *r)
{
    if (!(r->flags & FEED_ENDED))
        return "unknown";
    if (r->unread > 0)
        return "incomplete";
    return r->unsure > 0 || r->again > 0 || r->flags & FEED_STALLED ? "unknown" : "complete";
}

static void add_report(struct json *j, const struct control *control, const struct feed_report *r)
{
    json_begin_object(j, NULL);
    json_uints(j, {"epoch", r->epoch}, {"number", r->number}, {"asked", r->asked}, {"rank", r->rank},
               {"ranks", r->loaders});
    json_string(j, "coverage", verdict_of(r));
    add_flags(j, r->flags);
    json_uints(j, {"began", r->began / SECOND},
               {"took_ms", r->ended > r->began ? (r->ended - r->began) / MILLISECOND : 0}, {"samples", r->samples},
               {"bytes", r->bytes}, {"read", r->read}, {"unread", r->unread}, {"unsure", r->unsure},
               {"again", r->again}, {"unplanned", r->unplanned});
    add_missed(j, control, r);
    json_begin_object(j, "late");
    json_uints(j, {"samples", r->late}, {"sum_us", r->late_sum / 1000}, {"most_us", r->late_most / 1000});
    world_view_add_places(j, "from", r->late_from);
    json_end_object(j);
    world_view_add_places(j, "reads", r->reads);
    world_view_add_places(j, "read_bytes", r->read_bytes);
    json_uints(j, {"notes_lost", r->lost}, {"looks", r->looks}, {"behind", r->behind}, {"behind_most", r->behind_most});
    json_end_object(j);
}

static bool get_report(const struct feed *feed, uint64_t i, struct feed_report *report)
{
    return feed_report_get(feed, (unsigned)(i % FEED_REPORTS), report) && report->number != 0;
}

/* The first report that gets names: the names of all reports would need too much memory. */
static uint64_t first_named(const struct control *control, uint64_t begin, uint64_t end, struct feed_report *report)
{
    size_t size = 0;
    for (uint64_t i = end; i-- > begin;) {
        size += get_report(control->config.feed, i, report) ? measure_names(control, report) : 0;
        if (size > NAMES_MOST)
            return i + 1;
    }
    return begin;
}

/* The latest report about the list with this end. */
static bool find_report(const struct feed *feed, const struct feed_end *end, struct feed_report *report)
{
    uint64_t last = atomic_load(&feed->reports);
    for (uint64_t i = last; i > 0 && i + FEED_REPORTS > last; i--)
        if (get_report(feed, i - 1, report) && report->asked == end->asked && report->rank == end->rank)
            return true;
    return false;
}

int feed_view_add_report(const struct control *control, const struct feed_end *end, struct str *text)
{
    struct feed_report *report = malloc(sizeof *report);
    struct json json = {.out = text, .indent = true};
    if (!report)
        return -ENOMEM;
    if (!find_report(control->config.feed, end, report))
        *report = (struct feed_report){.epoch = end->epoch, .number = end->number, .rank = end->rank};
    add_report(&json, control, report);
    str_adds(text, "\n");
    free(report);
    return text->failed ? -ENOMEM : 0;
}

int control_epochs(struct control *control, struct str *text)
{
    const struct feed *feed = control->config.feed;
    struct json json = {.out = text, .indent = true};
    struct feed_report *report = malloc(sizeof *report);
    if (!report)
        return -ENOMEM;
    epoch_coverage_publish(control);
    json_begin_array(&json, NULL);
    uint64_t end = feed ? atomic_load(&feed->reports) : 0, begin = end > FEED_REPORTS ? end - FEED_REPORTS : 0;
    uint64_t named = first_named(control, begin, end, report);
    for (uint64_t i = begin; i < end; i++) {
        if (!get_report(feed, i, report))
            continue;
        if (i < named)
            report->unread_named = report->unplanned_named = 0;
        add_report(&json, control, report);
    }
    json_end_array(&json);
    str_adds(text, "\n");
    free(report);
    return text->failed ? -ENOMEM : 0;
}
