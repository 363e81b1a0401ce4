/* Reports about the lists of an epoch, in words. */
#include "cli/live/reports.h"

#include "cli/live/figures.h"
#include "fs/wire/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { NAMES_SHOWN = 16 };

int reports_select(const struct str *text, const struct reports_wish *wish, struct str *array)
{
    struct figures_list e = figures_list_of(text, NULL);
    struct str report;
    uint64_t latest = 0, last = 0;
    int count = 0;
    if (!memchr(text->data ? text->data : "", '[', text->length))
        return -EBADMSG;
    while (figures_next(&e, &report))
        if (figures_number(&report, "asked") >= latest) {
            latest = figures_number(&report, "asked");
            last = figures_number(&report, "number");
        }
    e = figures_list_of(text, NULL);
    str_adds(array, "[");
    /* the user who runs the mount may have written more */
    while (count < FEED_REPORTS && figures_next(&e, &report)) {
        if (wish->latest ? figures_number(&report, "number") != last : figures_number(&report, "epoch") != wish->epoch)
            continue;
        str_adds(array, count++ > 0 ? ",\n " : "\n ");
        str_add(array, report.data, report.length);
    }
    str_adds(array, "\n]\n");
    return array->failed ? -ENOMEM : count;
}

/* --- words --- */

static void add_why_unknown(struct str *out, const struct str *report)
{
    if (figures_is(report, "stopped", "true"))
        str_adds(out, "the loader stopped before the end of its list");
    else if (figures_is(report, "overflowed", "true"))
        str_adds(out, "the kernel dropped events (fs.inotify.max_queued_events)");
    else if (figures_is(report, "unwatched", "true"))
        str_adds(out, "the feeder did not watch all the time");
    else if (figures_is(report, "mapped", "true"))
        str_adds(out, "programs opened files without reading them, as mmap does, which cannot be seen");
    else if (figures_is(report, "partly", "true"))
        str_adds(out, "not all directories are watched (fs.inotify.max_user_watches)");
    else
        str_adds(out, "another list or program may have read them, or a process has them mapped");
}

/* For a list that has ended, without a sample that was certainly not read. */
static void add_unknown(struct str *out, const struct str *report)
{
    if (figures_number(report, "unsure") > 0) {
        figures_add(out, report,
                    "{read count} read, at least in part; it is not known whether the other "
                    "{unsure count} {unsure|sample was|samples were} read: ");
        add_why_unknown(out, report);
    } else {
        str_adds(out, "every planned sample was read; it is not known whether this loader read them: ");
        str_adds(out, figures_is(report, "stalled", "true") ? "the feeder was stopped when the list began or ended"
                                                            : "files were read more often than planned");
    }
}

static void add_verdict(struct str *out, const struct str *report)
{
    uint64_t read = figures_number(report, "read"), unsure = figures_number(report, "unsure");
    uint64_t files = read + unsure + figures_number(report, "unread");
    if (figures_is(report, "coverage", "complete")) {
        str_adds(out, "every planned sample was read, at least in part");
    } else if (!figures_is(report, "ended", "true")) {
        figures_add(out, report, "{read count} read so far (%d %%)", files ? (int)(100 * read / files) : 0);
    } else if (figures_is(report, "coverage", "incomplete")) {
        figures_add(out, report, "{unread count} {unread|sample was|samples were} not read");
        if (unsure > 0) {
            figures_add(out, report, "; of {unsure count} more it is not known: ");
            add_why_unknown(out, report);
        }
    } else {
        add_unknown(out, report);
    }
}

/* The first names; `all`: how many there should be. */
static void add_names(struct str *out, const char *head, const struct str *report, bool missed, uint64_t all)
{
    struct figures_list names = figures_list_of(report, missed ? "missed" : "strange");
    struct str name;
    unsigned shown = 0;
    for (; shown < NAMES_SHOWN && figures_next(&names, &name); shown++)
        figures_add(out, report, missed ? "%s{missed.%u.path text}\n" : "%s{strange.%u text}\n",
                    shown == 0 ? head : "                        ", shown);
    if (shown > 0 && all > shown)
        str_addf(out, "                        and %" PRIu64 " more (--json names up to 256)\n", all - shown);
}

static void add_late(struct str *out, const struct str *report)
{
    const char *comma = "";
    if (figures_number(report, "late.samples") == 0)
        return;
    figures_add(
        out, report,
        "            late        {late.samples count} {late.samples|sample|samples}, {late.most_us us} at most, "
        "{late.sum_us us} together; from");
    for (int i = 0; i < FIGURES_PLACES; i++) {
        const char *place = figures_places[i];
        if (figures_number(report, "late.from.%s", place) == 0)
            continue;
        figures_add(out, report, "%s %s {late.from.%s count}", comma, place, place);
        comma = ",";
    }
    str_adds(out, "\n");
}

static void add_report(struct str *out, const struct str *report)
{
    figures_add(out, report, "  rank {rank number -5}{samples count} samples, {bytes size}: ");
    add_verdict(out, report);
    if (figures_number(report, "again") > 0)
        figures_add(out, report, "; {again count} {again|repeated read|repeated reads}");
    str_adds(out, "\n");
    add_names(out, "            not read    ", report, true, figures_number(report, "unread"));
    add_late(out, report);
}

/* --- all ranks of a plan --- */

struct plan_words {
    struct str widest; /* the report with the most unplanned reads; a slice, like the next field */
    struct str last;   /* of the rank that was most often last */
    bool incomplete;
};

static void look_at_report(struct plan_words *w, const struct str *report)
{
    if (figures_number(report, "unplanned") >= figures_number(&w->widest, "unplanned"))
        w->widest = *report;
    if (figures_number(report, "behind") > figures_number(&w->last, "behind"))
        w->last = *report;
    w->incomplete |= figures_is(report, "coverage", "incomplete") && figures_is(report, "ended", "true");
}

static void add_end(struct str *out, const struct plan_words *w)
{
    uint64_t unplanned = figures_number(&w->widest, "unplanned"), looks = figures_number(&w->last, "looks");
    if (unplanned > 0) {
        figures_add(out, &w->widest,
                    "  besides   {unplanned count} {unplanned|read of a file|reads of files} in no list here\n");
        add_names(out, "            not planned ", &w->widest, false, unplanned);
    }
    if (looks > 0)
        figures_add(out, &w->last,
                    "  behind    rank {rank} was the last in %d %% of the time, by {behind_most} "
                    "{behind_most|sample|samples} at most\n",
                    (int)(100 * figures_number(&w->last, "behind") / looks));
}

/* The lowest plan number above `after`; 0: none. */
static uint64_t next_number(const struct str *array, uint64_t after)
{
    struct figures_list e = figures_list_of(array, NULL);
    struct str report;
    uint64_t next = 0;
    while (figures_next(&e, &report)) {
        uint64_t number = figures_number(&report, "number");
        if (number > after && (next == 0 || number < next))
            next = number;
    }
    return next;
}

bool reports_add_words(const char *mountpoint, const struct str *array, struct str *out)
{
    bool incomplete = false;
    for (uint64_t number = next_number(array, 0); number > 0; number = next_number(array, number)) {
        struct plan_words w = {0};
        CLEANUP_STR struct str ranks = STR_INIT;
        struct figures_list e = figures_list_of(array, NULL);
        struct str report;
        while (figures_next(&e, &report))
            if (figures_number(&report, "number") == number) {
                look_at_report(&w, &report);
                add_report(&ranks, &report);
            }
        if (out->length > 0)
            str_adds(out, "\n");
        str_add_printable(out, mountpoint, strlen(mountpoint));
        figures_add(out, &w.widest, "   epoch {epoch}\n");
        str_add(out, ranks.data ? ranks.data : "", ranks.length);
        add_end(out, &w);
        incomplete |= w.incomplete;
    }
    return incomplete;
}
