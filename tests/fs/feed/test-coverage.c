/* What a loader has read of its lists, told by events alone. */
#include "fs/feed/coverage.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 4000, RANKS = 4 };

static struct feed *feed;
static struct feed_report report;

struct loading {
    struct coverage *coverage;
    struct coverage_plan *plan;
    uint64_t now;
};

static uint64_t size_of(void *user, uint32_t file)
{
    (void)user;
    return 100 + file;
}

static void loading_init(struct loading *l)
{
    memset(feed, 0, sizeof *feed);
    *l = (struct loading){.now = 1};
    if (coverage_create(feed, FILES, &l->coverage) != 0)
        exit(1);
}

/* `ranks` lists of `length` each: of the files from `first` on, one after the other. */
static struct coverage_plan *begin_plan(struct loading *l, uint64_t number, uint32_t ranks, uint32_t length,
                                        const uint32_t *file, bool unwatched)
{
    uint32_t rank[RANKS], start[RANKS + 1];
    struct coverage_plan *plan = NULL;

    for (uint32_t i = 0; i <= ranks; i++) {
        start[i] = i * length;
        if (i < ranks)
            rank[i] = 10 + i;
    }
    struct coverage_lists lists = {.number = number,
                                   .epoch = number + 100,
                                   .slot = (unsigned)number,
                                   .unwatched = unwatched,
                                   .asked = 1,
                                   .ranks = ranks,
                                   .rank = rank,
                                   .start = start,
                                   .file = file,
                                   .size = size_of};
    int error = coverage_begin(l->coverage, &lists, &plan);
    if (error && error != -E2BIG)
        exit(1);
    return plan;
}

/* A loader's whole read, in three calls. */
static bool read_file(struct loading *l, uint32_t file, struct coverage_hit *hit)
{
    l->now += MILLISECOND;
    bool begun = coverage_event(l->coverage, file, COVERAGE_ACCESS, l->now, hit);
    coverage_event(l->coverage, file, COVERAGE_ACCESS, l->now, NULL);
    coverage_event(l->coverage, file, COVERAGE_ACCESS, l->now, NULL);
    coverage_event(l->coverage, file, COVERAGE_CLOSE, l->now, NULL);
    return begun;
}

/* The feeder's, seen. */
static void feed_file(struct loading *l, uint32_t file)
{
    coverage_own(l->coverage, file);
    coverage_event(l->coverage, file, COVERAGE_CLOSE, l->now, NULL);
}

static const struct feed_report *get_report(struct loading *l, unsigned i)
{
    coverage_look(l->coverage, l->now += 2 * SECOND);
    memset(&report, 0, sizeof report);
    feed_report_get(feed, i, &report);
    return &report;
}

static uint32_t *make_files(uint32_t n)
{
    uint32_t *file = calloc(n, sizeof *file);

    for (uint32_t i = 0; file && i < n; i++)
        file[i] = i * 7919u % FILES;
    return file;
}

static void test_whole(void)
{
    struct loading l;
    struct coverage_hit hit;
    uint32_t *file = make_files(200);

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 2, 100, file, false);
    bool all = true;
    for (uint32_t i = 0; i < 100; i++) {
        feed_file(&l, file[i]);
        all &= read_file(&l, file[i], &hit) && hit.plan == l.plan && hit.list == 0 && hit.position == i;
        if (i == 40) {
            coverage_look(l.coverage, l.now += 2 * SECOND);
            is_int(atomic_load(&feed->rank[1][0].reached), 39, "said on its way: where it is");
            is_int(get_report(&l, 0)->read, 41, "and what it has read");
            ok(!(report.flags & FEED_ENDED), "in a report that goes on");
        }
        if (i % 2 == 0)
            all &= read_file(&l, file[100 + i / 2], &hit) && hit.list == 1 && hit.position == i / 2;
    }
    ok(all, "each read is of its position");
    get_report(&l, 0);
    ok(report.number == 1 && report.epoch == 101 && report.rank == 10 && report.samples == 100 && report.read == 100 &&
           report.unread == 0 && report.again == 0 && report.unplanned == 0 && report.flags == FEED_ENDED &&
           report.loaders == 2,
       "the report of a list that was read");
    get_report(&l, 1);
    ok(report.rank == 11 && report.read == 50 && report.unread == 50 && !(report.flags & FEED_ENDED),
       "and of one that is being read");
    ok(report.behind == report.looks && report.looks > 0 && report.behind_most >= 19, "it is behind the other");
    is_int(atomic_load(&feed->rank[1][1].read), 50, "as said for status");
    coverage_end(l.coverage, l.plan);
    get_report(&l, 1);
    ok(report.flags & FEED_ENDED && report.unread == 50 && report.unread_named == 50 &&
           report.missed[0].position == 50 && report.missed[0].file == file[150],
       "what it has not read is named when it is over");
    coverage_destroy(l.coverage);
    free(file);
}

static void test_skips_and_repeats(void)
{
    struct loading l;
    uint32_t *file = make_files(200);

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    for (uint32_t i = 0; i < 100; i++) {
        if (i == 17 || i == 50 || i == 99)
            continue;
        feed_file(&l, file[i]);
        read_file(&l, file[i], NULL);
        if (i == 30 || i == 31)
            read_file(&l, file[i], NULL);
        if (i == 60)
            read_file(&l, 3999, NULL);
    }
    struct coverage_plan *next = begin_plan(&l, 2, 1, 100, file + 100, false);
    for (uint32_t i = 0; i < 40; i++)
        read_file(&l, file[100 + i], NULL);
    get_report(&l, 0);
    ok(report.flags & FEED_ENDED && report.unread == 3 && report.unsure == 0, "three samples were skipped");
    ok(report.unread_named == 3 && report.missed[0].position == 17 && report.missed[1].file == file[50] &&
           report.missed[2].position == 99,
       "these three");
    is_int(report.again, 2, "two were read again");
    ok(report.unplanned == 1 && report.unplanned_named == 1 && report.unplanned_file[0] == 3999,
       "one was read that was not planned");
    get_report(&l, 1);
    ok(report.number == 2 && report.read == 40 && report.unplanned == 0, "the next epoch has a report of its own");
    read_file(&l, file[17], NULL);
    is_int(get_report(&l, 0)->read, 97, "what is left stays as it was");
    coverage_destroy(l.coverage);

    /* The last one is skipped, and is the first of the next epoch. */
    uint32_t other[100];
    for (uint32_t i = 0; i < 100; i++)
        other[i] = file[(i + 99) % 100];
    loading_init(&l);
    begin_plan(&l, 1, 1, 100, file, false);
    for (uint32_t i = 0; i < 99; i++)
        read_file(&l, file[i], NULL);
    next = begin_plan(&l, 2, 1, 100, other, false);
    for (uint32_t i = 0; i < 100; i++)
        read_file(&l, other[i], NULL);
    get_report(&l, 0);
    ok(report.flags & FEED_ENDED && report.unread == 1 && report.missed[0].position == 99,
       "what the next epoch begins with was not the end of the last");
    get_report(&l, 1);
    ok(report.unread == 0 && report.read == 100, "but of that");
    coverage_end(l.coverage, next);
    coverage_destroy(l.coverage);
    free(file);
}

/* The same files in the next epoch, which the feeder reads ahead of while the last ones are read. */
static void test_epochs(void)
{
    struct loading l;
    uint32_t *file = make_files(200), reverse[200];
    struct coverage_plan *plan[2];

    loading_init(&l);
    for (uint32_t i = 0; i < 200; i++)
        reverse[199 - i] = file[i];
    plan[0] = begin_plan(&l, 1, 1, 200, file, false);
    plan[1] = begin_plan(&l, 2, 1, 200, reverse, false);
    struct coverage_hit hit;
    bool first = true, second = true;
    for (uint32_t i = 0; i < 200; i++)
        first &= read_file(&l, file[i], &hit) && hit.plan == plan[0] && hit.position == i;
    for (uint32_t i = 0; i < 200; i++)
        second &= read_file(&l, reverse[i], &hit) && hit.plan == plan[1] && hit.position == i;
    ok(first && second, "a file is read for the epoch that its loader is in");
    is_int(get_report(&l, 0)->again, 0, "and not again for the one before");
    for (uint32_t i = 0; i < 200; i++)
        read_file(&l, file[i], NULL);
    get_report(&l, 1);
    get_report(&l, 2);
    ok(atomic_load(&feed->reports) == 3 && report.read >= 190, "a plan that is read once more has another report");
    coverage_destroy(l.coverage);
    free(file);
}

static void test_repeats(void)
{
    uint32_t file[] = {5, 6, 5, 7, 8, 5, 9, 6};
    struct loading l;

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 8, file, false);
    for (uint32_t i = 0; i < 5; i++)
        read_file(&l, file[i], NULL);
    ok(coverage_is_read(l.plan, 0, 2) && !coverage_is_read(l.plan, 0, 5), "a file that is planned thrice, read twice");
    read_file(&l, 9, NULL);
    coverage_event(l.coverage, 5, COVERAGE_ACCESS, 1, NULL);
    coverage_event(l.coverage, 6, COVERAGE_ACCESS, 1, NULL);
    get_report(&l, 0);
    ok(report.read == 8 && report.again == 0 && report.unread == 0 && report.repeats == 0, "as planned is not again");
    coverage_destroy(l.coverage);

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 8, file, false);
    for (uint32_t i = 0; i < 5; i++)
        read_file(&l, i == 4 ? 9 : file[i], NULL);
    coverage_end(l.coverage, l.plan);
    get_report(&l, 0);
    ok(report.unread == 1 && report.missed[0].file == 8 && report.repeats == 2,
       "what was read less often is told apart");
    coverage_destroy(l.coverage);
}

/* The feeder is late: it opens a file that is being read. */
static void test_own(void)
{
    uint32_t *file = make_files(100);
    struct loading l;

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    coverage_event(l.coverage, file[0], COVERAGE_ACCESS, 1, NULL);
    feed_file(&l, file[0]);
    ok(!coverage_event(l.coverage, file[0], COVERAGE_ACCESS, 2, NULL), "the feeder's close ends nobody's read");
    coverage_event(l.coverage, file[0], COVERAGE_CLOSE, 3, NULL);
    /* One event for two closes. */
    coverage_own(l.coverage, file[1]);
    coverage_event(l.coverage, file[1], COVERAGE_ACCESS, 1, NULL);
    coverage_event(l.coverage, file[1], COVERAGE_CLOSE, 3, NULL);
    struct coverage_plan *next = begin_plan(&l, 2, 1, 100, file, false);
    struct coverage_hit hit = {0};
    ok(coverage_event(l.coverage, file[1], COVERAGE_ACCESS, 5, &hit) && hit.plan == next,
       "closes that come as one hide no read of the next epoch");
    is_int(get_report(&l, 0)->again, 0, "none was again");
    coverage_destroy(l.coverage);
    free(file);
}

static void test_unknown(void)
{
    uint32_t *file = make_files(100);
    struct loading l;

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    for (uint32_t i = 0; i < 100; i++) {
        feed_file(&l, file[i]);
        if (i == 3)
            read_file(&l, file[i], NULL);
        else
            coverage_event(l.coverage, file[i], COVERAGE_CLOSE, 1, NULL);
    }
    get_report(&l, 0);
    ok(report.flags & FEED_MAPPED && !(report.flags & FEED_ENDED) && report.read == 1, "said while it goes on");
    coverage_end(l.coverage, l.plan);
    get_report(&l, 0);
    ok(report.flags & FEED_MAPPED && report.unsure == 99 && report.unread == 99, "files that are mapped");
    coverage_destroy(l.coverage);

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    read_file(&l, file[0], NULL);
    coverage_lost(l.coverage, FEED_OVERFLOWED);
    get_report(&l, 0);
    ok(report.flags & FEED_OVERFLOWED, "lost events");
    is_int(atomic_load(&feed->rank[1][0].flags), FEED_OVERFLOWED, "status hears of it");
    coverage_destroy(l.coverage);

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, true);
    for (uint32_t i = 10; i < 99; i++)
        read_file(&l, file[i], NULL);
    coverage_end(l.coverage, l.plan);
    get_report(&l, 0);
    ok(report.unread == 11 && report.unsure == 10, "reads before the watches were there");
    coverage_destroy(l.coverage);

    loading_init(&l);
    for (uint32_t i = 0; i < 5; i++)
        read_file(&l, file[i], NULL);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    read_file(&l, file[5], NULL);
    get_report(&l, 0);
    ok(report.read == 6 && report.unplanned == 0, "a plan that is known late has what was read since it was asked for");
    coverage_destroy(l.coverage);
    free(file);
}

static void test_killed(void)
{
    uint32_t *file = make_files(200);
    struct loading l;

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    for (uint32_t i = 0; i < 60; i++)
        read_file(&l, file[i], NULL);
    coverage_look(l.coverage, l.now += 2 * SECOND);
    coverage_destroy(l.coverage);
    if (coverage_create(feed, FILES, &l.coverage) != 0)
        exit(1);
    l.plan = begin_plan(&l, 1, 1, 100, file, true);
    for (uint32_t i = 60; i < 90; i++)
        read_file(&l, file[i], NULL);
    get_report(&l, 0);
    ok(atomic_load(&feed->reports) == 1 && report.read == 90 && report.flags & FEED_OVERFLOWED,
       "the next feeder goes on with the report, and does not know all");
    for (uint32_t i = 90; i < 100; i++)
        read_file(&l, file[i], NULL);
    begin_plan(&l, 2, 1, 100, file + 100, false);
    for (uint32_t i = 100; i < 150; i++)
        read_file(&l, file[i], NULL);
    get_report(&l, 0);
    ok(report.flags & FEED_ENDED, "until it is over");
    coverage_destroy(l.coverage);
    if (coverage_create(feed, FILES, &l.coverage) != 0)
        exit(1);
    begin_plan(&l, 1, 1, 100, file, true);
    begin_plan(&l, 2, 1, 100, file + 100, true);
    for (uint32_t i = 150; i < 190; i++)
        read_file(&l, file[i], NULL);
    is_int(get_report(&l, 1)->read, 90, "a third one goes on with the second plan alone");
    coverage_destroy(l.coverage);
    free(file);
}

static void test_late(void)
{
    uint32_t *file = make_files(100);
    struct loading l;

    loading_init(&l);
    l.plan = begin_plan(&l, 1, 1, 100, file, false);
    for (uint32_t i = 0; i < 3; i++)
        read_file(&l, file[i], NULL);
    feed_note_add(feed, &(struct feed_answer){file[3], 1000, 5 * MILLISECOND, 0, true});
    feed_note_add(feed, &(struct feed_answer){file[4], 1000, 7 * MILLISECOND, 3, false});
    feed_note_add(feed, &(struct feed_answer){file[4], 500, 9 * MILLISECOND, 3, false});
    feed_note_add(feed, &(struct feed_answer){file[5], 1000, 1 * MILLISECOND, 2, false});
    feed_note_add(feed, &(struct feed_answer){3999, 1000, 1 * MILLISECOND, 2, false});
    get_report(&l, 0);
    ok(report.late == 2 && report.late_from[3] == 1 && report.late_from[2] == 1, "two samples were waited for");
    ok(report.late_sum == 17 * MILLISECOND && report.late_most == 9 * MILLISECOND, "so long");
    ok(report.reads[0] == 1 && report.reads[3] == 2 && report.read_bytes[3] == 1500, "all reads count by their place");
    coverage_destroy(l.coverage);
    free(file);
}

/* Small epochs, one after the other, leave nothing. */
static void test_many(void)
{
    uint32_t file[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct loading l;
    bool all = true;

    loading_init(&l);
    for (uint64_t n = 1; n <= 2000; n++) {
        l.plan = begin_plan(&l, n, 1, 10, file, false);
        for (uint32_t i = 0; i < 10; i++)
            read_file(&l, file[(i * 3 + n) % 10], NULL);
        get_report(&l, (unsigned)(n - 1));
        all &= report.number == n && report.read == 10 && report.again == 0;
        coverage_end(l.coverage, l.plan);
    }
    ok(all, "2,000 epochs of 10 samples");
    coverage_destroy(l.coverage);
}

/* Lists that are one file over and over: each of its entries stands behind all others. */
static void test_one_file(void)
{
    enum { MOST = 512, TOO_MANY = 1 << 20 };
    struct loading l;
    uint32_t *file = calloc(2 * TOO_MANY, sizeof *file);

    loading_init(&l);
    ok(!begin_plan(&l, 1, 2, TOO_MANY, file, false), "one file, planned too often");
    l.plan = begin_plan(&l, 2, 1, 2 * MOST, file, false);
    ok(l.plan, "and as often as can be followed");
    for (uint32_t i = 0; i < MOST; i++)
        read_file(&l, 0, NULL);
    is_int(get_report(&l, 0)->read, MOST, "by how many reads");
    is_int(report.unread, 0, "and nothing is missed");
    coverage_destroy(l.coverage);
    free(file);
}

/* Of a plan that is known long after, when its reports have been written over. */
static void test_overtaken(void)
{
    enum { PLANS = FEED_REPORTS / RANKS + 1 };
    struct loading l;
    struct coverage_plan *plan[PLANS];
    uint32_t *file = make_files(RANKS * 10);

    loading_init(&l);
    for (uint64_t n = 0; n < PLANS; n++) {
        plan[n] = begin_plan(&l, n + 1, RANKS, 10, file, false);
        for (uint32_t i = 0; i < RANKS * 10; i++)
            read_file(&l, file[i], NULL);
        coverage_look(l.coverage, l.now += 2 * SECOND);
        if (n > 0)
            coverage_end(l.coverage, plan[n]);
    }
    is_int(get_report(&l, 0)->number, PLANS, "the latest report");
    coverage_end(l.coverage, plan[0]);
    is_int(get_report(&l, 0)->number, PLANS, "the end of an old plan is not written over a new one's");
    coverage_destroy(l.coverage);
    free(file);
}

int main(void)
{
    feed = calloc(1, sizeof *feed);
    if (!feed)
        return 1;
    test_whole();
    test_skips_and_repeats();
    test_epochs();
    test_repeats();
    test_own();
    test_unknown();
    test_killed();
    test_late();
    test_many();
    test_one_file();
    test_overtaken();
    free(feed);
    return done_testing();
}
