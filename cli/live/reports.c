/* What was read of the lists of an epoch, said in words. */
#include "cli/live/reports.h"

#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/wire/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { NAMES_SHOWN = 16 };

/* One element after the other of an array. */
struct elements {
    const char *rest;
    size_t left;
};

static struct elements elements_of(const struct str *text, const char *path)
{
    struct elements e = {.rest = text->data, .left = text->length};

    if (path) {
        long n = json_find(text->data, text->length, path, &e.rest);
        e.left = n > 0 ? (size_t)n : 0;
    }
    return e;
}

static bool element_next(struct elements *e, struct str *element)
{
    const char *value;
    long n = e->left > 0 ? json_next(&e->rest, &e->left, &value) : -ENOENT;

    if (n > 0)
        *element = (struct str){.data = (char *)value, .length = (size_t)n};
    return n > 0;
}

static bool is_true(const struct str *report, const char *path)
{
    const char *value;

    return json_find(report->data, report->length, path, &value) == 4 && memcmp(value, "true", 4) == 0;
}

static bool is_word(const struct str *report, const char *path, const char *word)
{
    CLEANUP_STR struct str text = STR_INIT;

    return json_find_string(report->data, report->length, path, &text) == 0 && !text.failed && text.data &&
           strcmp(text.data, word) == 0;
}

int reports_select(const struct str *text, const struct reports_wish *wish, struct str *array)
{
    struct elements e = elements_of(text, NULL);
    struct str report;
    uint64_t latest = 0, last = 0;
    int count = 0;

    if (!memchr(text->data ? text->data : "", '[', text->length))
        return -EBADMSG;
    while (element_next(&e, &report))
        if (client_number(&report, "asked") >= latest) {
            latest = client_number(&report, "asked");
            last = client_number(&report, "number");
        }
    e = elements_of(text, NULL);
    str_adds(array, "[");
    while (count < FEED_REPORTS && element_next(&e, &report)) { /* who runs the mount may have written more */
        if (wish->latest ? client_number(&report, "number") != last : client_number(&report, "epoch") != wish->epoch)
            continue;
        str_adds(array, count++ > 0 ? ",\n " : "\n ");
        str_add(array, report.data, report.length);
    }
    str_adds(array, "\n]\n");
    return array->failed ? -ENOMEM : count;
}

/* ---- words ---- */

static void add_number(struct str *out, uint64_t n, const char *one, const char *many)
{
    char count[COUNT_TEXT];

    str_addf(out, "%s %s", count_format(n, count, sizeof count), n == 1 ? one : many);
}

static void add_why_unknown(struct str *out, const struct str *report)
{
    if (is_true(report, "stopped"))
        str_adds(out, "the loader stopped before the end of its list");
    else if (is_true(report, "overflowed"))
        str_adds(out, "the kernel dropped events (fs.inotify.max_queued_events)");
    else if (is_true(report, "unwatched"))
        str_adds(out, "the feeder did not watch all the time");
    else if (is_true(report, "mapped"))
        str_adds(out, "programs opened files without reading them, as mmap does, which cannot be seen");
    else if (is_true(report, "partly"))
        str_adds(out, "not all directories are watched (fs.inotify.max_user_watches)");
    else
        str_adds(out, "another list or program may have read them, or somebody has them mapped");
}

/* Of a list that is over, with nothing that was certainly not read. */
static void add_unknown(struct str *out, const struct str *report)
{
    uint64_t unsure = client_number(report, "unsure");
    char count[COUNT_TEXT];

    if (unsure > 0) {
        str_addf(out, "%s read, at least in part; whether the other ",
                 count_format(client_number(report, "read"), count, sizeof count));
        add_number(out, unsure, "sample was is not known: ", "samples were is not known: ");
        add_why_unknown(out, report);
    } else {
        str_adds(out, "somebody read every planned sample; whether this loader did is not known: ");
        str_adds(out, is_true(report, "stalled") ? "the feeder stood still when the list began or ended"
                                                 : "files were read more often than planned");
    }
}

static void add_verdict(struct str *out, const struct str *report)
{
    uint64_t read = client_number(report, "read"), unsure = client_number(report, "unsure");
    uint64_t files = read + unsure + client_number(report, "unread");
    char count[COUNT_TEXT];

    if (is_word(report, "coverage", "complete")) {
        str_adds(out, "every planned sample was read, at least in part");
    } else if (!is_true(report, "ended")) {
        str_addf(out, "%s read so far (%d %%)", count_format(read, count, sizeof count),
                 files ? (int)(100 * read / files) : 0);
    } else if (is_word(report, "coverage", "incomplete")) {
        add_number(out, client_number(report, "unread"), "sample was not read", "samples were not read");
        if (unsure > 0) {
            str_adds(out, "; of ");
            add_number(out, unsure, "more it is not known: ", "more it is not known: ");
            add_why_unknown(out, report);
        }
    } else {
        add_unknown(out, report);
    }
}

static void add_more_reads(struct str *out, const struct str *report)
{
    uint64_t again = client_number(report, "again");

    if (again == 0)
        return;
    str_adds(out, "; ");
    add_number(out, again, "read of a file that had been read", "reads of files that had been read");
}

/* The first names; `all` is how many there should be. */
static void add_names(struct str *out, const char *head, const struct str *report, bool missed, uint64_t all)
{
    unsigned shown = 0;

    for (; shown < NAMES_SHOWN; shown++) {
        CLEANUP_STR struct str path = STR_INIT, name = STR_INIT;
        str_addf(&path, missed ? "missed.%u.path" : "strange.%u", shown);
        if (path.failed || json_find_string(report->data, report->length, path.data, &name) < 0 || name.failed)
            break;
        str_adds(out, shown == 0 ? head : "                        ");
        str_add_printable(out, name.data, name.length);
        str_adds(out, "\n");
    }
    if (shown > 0 && all > shown)
        str_addf(out, "                        and %" PRIu64 " more (--json names up to 256)\n", all - shown);
}

static void add_late(struct str *out, const struct str *report)
{
    static const char *const places[] = {"late.from.ram", "late.from.ssd", "late.from.peer", "late.from.source"};
    uint64_t late = client_number(report, "late.samples");
    char most[SIZE_TEXT], sum[SIZE_TEXT], count[COUNT_TEXT];
    bool first = true;

    if (late == 0)
        return;
    str_adds(out, "            late        ");
    add_number(out, late, "sample", "samples");
    str_addf(out, ", %s at most, %s together; from",
             duration_format(client_number(report, "late.most_us") * 1000, most, sizeof most),
             duration_format(client_number(report, "late.sum_us") * 1000, sum, sizeof sum));
    for (int i = 0; i < 4; i++) {
        uint64_t n = client_number(report, places[i]);
        if (n == 0)
            continue;
        str_addf(out, "%s %s %s", first ? "" : ",", places[i] + strlen("late.from."),
                 count_format(n, count, sizeof count));
        first = false;
    }
    str_adds(out, "\n");
}

static void add_report(struct str *out, const struct str *report)
{
    char count[COUNT_TEXT], size[SIZE_TEXT];

    str_addf(out, "  rank %-5" PRIu64 "%s samples, %s: ", client_number(report, "rank"),
             count_format(client_number(report, "samples"), count, sizeof count),
             size_format(client_number(report, "bytes"), size, sizeof size));
    add_verdict(out, report);
    add_more_reads(out, report);
    str_adds(out, "\n");
    add_names(out, "            not read    ", report, true, client_number(report, "unread"));
    add_late(out, report);
}

/* ---- all ranks of a plan ---- */

struct plan_words {
    uint64_t number, epoch, ranks, unplanned, behind, looks, most, slowest;
    struct str widest; /* the report with the most reads that were not planned; a slice */
    bool incomplete;
};

static void look_at_report(struct plan_words *w, const struct str *report)
{
    uint64_t unplanned = client_number(report, "unplanned"), behind = client_number(report, "behind");

    w->ranks++;
    if (unplanned >= w->unplanned) {
        w->unplanned = unplanned;
        w->widest = *report;
    }
    if (behind > w->behind) {
        w->behind = behind;
        w->looks = client_number(report, "looks");
        w->most = client_number(report, "behind_most");
        w->slowest = client_number(report, "rank");
    }
    w->incomplete |= is_word(report, "coverage", "incomplete") && is_true(report, "ended");
}

static void add_end(struct str *out, const struct plan_words *w)
{
    if (w->unplanned > 0) {
        str_adds(out, "  besides   ");
        add_number(out, w->unplanned, "read of a file that no list here has\n",
                   "reads of files that no list here has\n");
        add_names(out, "            not planned ", &w->widest, false, w->unplanned);
    }
    if (w->behind > 0 && w->looks > 0)
        str_addf(out,
                 "  behind    rank %" PRIu64 " was the last in %d %% of the time, by %" PRIu64 " sample%s at most\n",
                 w->slowest, (int)(100 * w->behind / w->looks), w->most, w->most == 1 ? "" : "s");
}

/* The plan that stands first of those above `after`; 0: none. */
static uint64_t next_number(const struct str *array, uint64_t after)
{
    struct elements e = elements_of(array, NULL);
    struct str report;
    uint64_t next = 0;

    while (element_next(&e, &report)) {
        uint64_t number = client_number(&report, "number");
        if (number > after && (next == 0 || number < next))
            next = number;
    }
    return next;
}

bool reports_add_words(const char *mountpoint, const struct str *array, struct str *out)
{
    bool incomplete = false;

    for (uint64_t number = next_number(array, 0); number > 0; number = next_number(array, number)) {
        struct plan_words w = {.number = number};
        CLEANUP_STR struct str ranks = STR_INIT;
        struct elements e = elements_of(array, NULL);
        struct str report;
        while (element_next(&e, &report))
            if (client_number(&report, "number") == number) {
                w.epoch = client_number(&report, "epoch");
                look_at_report(&w, &report);
                add_report(&ranks, &report);
            }
        if (out->length > 0)
            str_adds(out, "\n");
        str_add_printable(out, mountpoint, strlen(mountpoint));
        str_addf(out, "   epoch %" PRIu64 "\n", w.epoch);
        str_add(out, ranks.data ? ranks.data : "", ranks.length);
        add_end(out, &w);
        incomplete |= w.incomplete;
    }
    return incomplete;
}
