/* What a loader has read of its lists, told by events alone; and what is never said. */
#include "fs/feed/coverage.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 4000, EMPTY = 3998, STRANGE = 3999 };

static struct feed *feed;
static struct feed_report report;
static uint32_t opened = UINT32_MAX; /* a file that somebody has open */

struct loading {
    struct coverage *coverage;
    uint64_t now, asked;
};

struct loaded {
    struct feed_course *course;
    struct coverage_plan *plan;
};

static uint64_t size_of(void *user, uint32_t file)
{
    (void)user;
    return file == EMPTY ? 0 : 100;
}

static bool is_unopened(void *user, uint32_t file)
{
    (void)user;
    return file != opened;
}

static bool sees(void *user, uint32_t file)
{
    (void)user;
    (void)file;
    return true;
}

static const struct coverage_rules rules = {size_of, is_unopened, NULL, NULL};
static const struct window_files window_files = {size_of, sees, NULL};

static void loading_init(struct loading *l)
{
    memset(feed, 0, sizeof *feed);
    *l = (struct loading){.now = clock_now()};
    if (coverage_create(feed, FILES, &rules, &l->coverage) != 0)
        exit(1);
}

/* The file at a position: each list of a length has all files below it. */
static uint32_t file_at(uint32_t factor, uint32_t length, uint32_t position)
{
    return (uint32_t)(((uint64_t)position * factor + factor / 2) % length);
}

/* `ranks` lists of the files below `length`, dealt one by one; `factor` is prime to it. */
static struct loaded follow(struct loading *l, uint64_t number, uint32_t ranks, uint32_t length, uint32_t factor)
{
    struct loaded loaded = {0};
    uint32_t counts[FEED_RANKS], *file = calloc(length, sizeof *file);
    for (uint32_t r = 0; r < ranks; r++)
        counts[r] = length / ranks;
    for (uint32_t i = 0; file && i < length; i++)
        file[i] = file_at(factor, length, i);
    if (!file || course_create(&(struct course_lists){file, counts, ranks, FILES}, &window_files, &loaded.course))
        exit(1);
    loaded.course->number = number;
    loaded.course->epoch = number + 100;
    loaded.course->slot = (int)number;
    loaded.course->span = 64;
    for (uint32_t r = 0; r < ranks; r++)
        loaded.course->rank[r] = 10 + r;
    if (coverage_follow(l->coverage, loaded.course, &loaded.plan) != 0)
        exit(1);
    return loaded;
}

static struct feed_asking begin(struct loading *l, const struct loaded *loaded, uint32_t list, uint32_t flags)
{
    struct feed_asking asking = {.asked = ++l->asked, .since = clock_now(), .notes = atomic_load(&feed->notes)};
    if (coverage_begin(l->coverage, loaded->plan, list, &asking, flags) != 0)
        exit(1);
    return asking;
}

static void end(struct loading *l, const struct loaded *loaded, uint32_t list, bool stopped)
{
    struct feed_asking asking = {.ended = ++l->asked, .until = clock_now(), .stopped = stopped};
    coverage_end(loaded->plan, list, &asking);
    coverage_arm(l->coverage);
    coverage_settle(l->coverage, clock_now());
}

static void forget(struct loading *l, struct loaded *loaded)
{
    coverage_forget(l->coverage, loaded->plan);
    course_destroy(loaded->course);
}

/* A loader's whole read, in three calls. */
static void read_file(struct loading *l, uint32_t file)
{
    l->now += MILLISECOND;
    for (int i = 0; i < 3; i++)
        coverage_event(l->coverage, file, COVERAGE_ACCESS, l->now);
    coverage_event(l->coverage, file, COVERAGE_CLOSE, l->now);
}

/* The feeder's, seen. */
static void feed_file(struct loading *l, uint32_t file)
{
    coverage_own(l->coverage, file);
    coverage_event(l->coverage, file, COVERAGE_CLOSE, l->now);
}

static void read_list(struct loading *l, const struct loaded *loaded, uint32_t list, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        feed_file(l, loaded->course->file[loaded->course->start[list] + i]);
        read_file(l, loaded->course->file[loaded->course->start[list] + i]);
    }
}

/* The report of a rank's list, as of the last writing. */
static bool reported(uint64_t number, uint32_t list, uint64_t read, uint64_t unread, uint64_t unsure)
{
    for (unsigned i = 0; i < FEED_REPORTS; i++) {
        feed_report_get(feed, i, &report);
        if (report.number == number && report.rank == 10 + list)
            break;
    }
    bool right = report.number == number && report.read == read && report.unread == unread && report.unsure == unsure;
    if (!right)
        printf("# %d read, %d unread, %d unsure, flags %x\n", (int)report.read, (int)report.unread, (int)report.unsure,
               report.flags);
    return right;
}

static void test_whole(void)
{
    struct loading l;
    loading_init(&l);
    struct loaded p = follow(&l, 1, 2, 400, 7);
    begin(&l, &p, 0, 0);
    begin(&l, &p, 1, 0);
    read_list(&l, &p, 0, 0, 200);
    read_list(&l, &p, 1, 0, 50);
    coverage_look(l.coverage, l.now += 2 * SECOND);
    ok(reported(1, 0, 200, 0, 0) && report.again == 0 && !(report.flags & FEED_ENDED),
       "all is read, nobody says it ends");
    ok(reported(1, 1, 50, 0, 150) && report.behind > 0, "of a list that is being read nothing is unread");
    coverage_publish(p.plan, 1, &feed->rank[1][1]);
    is_int(atomic_load(&feed->rank[1][1].reached), 48, "where its loader is");
    end(&l, &p, 0, false);
    ok(reported(1, 0, 200, 0, 0) && report.flags == (FEED_ENDED | FEED_LEFT), "the first one ends");
    coverage_publish(p.plan, 0, &feed->rank[1][0]);
    is_int(atomic_load(&feed->rank[1][0].closed), 3, "which is said by the number of the request");
    end(&l, &p, 1, true);
    ok(reported(1, 1, 50, 0, 150) && report.flags & FEED_STOPPED, "one that is left early has nothing unread");
    forget(&l, &p);
    coverage_destroy(l.coverage);
}

static void test_unread(void)
{
    struct loading l;
    loading_init(&l);
    struct loaded p = follow(&l, 1, 1, 400, 7);
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 200);
    read_file(&l, STRANGE);
    read_list(&l, &p, 0, 203, 400);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 397, 3, 0) && report.unread_named == 3 && report.missed[0].position == 200, "skipped, by name");
    ok(report.unplanned == 1 && report.unplanned_file[0] == STRANGE, "and one that is in no list");

    static const uint32_t doubts[] = {FEED_PARTLY, FEED_UNWATCHED, FEED_OVERFLOWED};
    for (int i = 0; i < 3; i++) {
        begin(&l, &p, 0, doubts[i]);
        read_list(&l, &p, 0, 0, 390);
        end(&l, &p, 0, false);
        ok(reported(1, 0, 390, 0, 10), "not where not all was watched");
    }
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 390);
    coverage_lost(l.coverage, FEED_OVERFLOWED);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 390, 0, 10), "nor where events were lost");
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 390);
    coverage_event(l.coverage, p.course->file[5], COVERAGE_CLOSE, l.now);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 390, 0, 10), "nor where somebody opened a file and did not read it");
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 390);
    opened = p.course->file[395];
    end(&l, &p, 0, false);
    ok(reported(1, 0, 390, 9, 1), "nor of a file that somebody has open");
    opened = UINT32_MAX;
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 390);
    feed_note_add(feed, &(struct feed_answer){.file = p.course->file[393], .bytes = 100});
    feed_note_add(feed, &(struct feed_answer){.file = p.course->file[394], .bytes = 100, .fed = true});
    end(&l, &p, 0, false);
    ok(reported(1, 0, 390, 9, 1), "nor of one that the server was asked for");
    is_int(report.late, 1, "for which its reader waited");
    begin(&l, &p, 0, 0);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 0, 0, 400), "nor where nothing can be seen at all");
    is_int(atomic_load(&feed->reports), 1, "a list that begins again has the report of that before");
    forget(&l, &p);
    coverage_destroy(l.coverage);
}

static void test_others(void)
{
    struct loading l;
    loading_init(&l);
    struct loaded p = follow(&l, 1, 1, 3000, 1009);
    begin(&l, &p, 0, 0);
    for (uint32_t file = 0; file < 3000; file++)
        read_file(&l, file);
    end(&l, &p, 0, false);
    reported(1, 0, 0, 0, 0);
    ok(report.read < 300 && report.unread == 0 && report.read + report.unsure == 3000,
       "what is read in another order is no loader's reading");
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 1500);
    for (uint32_t file = 0; file < 3000; file++)
        read_file(&l, file);
    read_list(&l, &p, 0, 1500, 3000);
    end(&l, &p, 0, false);
    ok(!reported(1, 0, 3000, 0, 0) || report.again > 0, "nor beside one");

    struct loaded q = follow(&l, 2, 1, 3000, 1013);
    begin(&l, &p, 0, 0);
    begin(&l, &q, 0, 0);
    read_list(&l, &p, 0, 0, 3000);
    end(&l, &p, 0, false);
    end(&l, &q, 0, false);
    reported(2, 0, 0, 0, 0);
    ok(report.unread == 0 && report.read < 300, "what one job reads is not read by the other");
    forget(&l, &p);
    forget(&l, &q);

    p = follow(&l, 3, 1, 60, 7);
    q = follow(&l, 4, 1, 60, 11);
    begin(&l, &p, 0, 0);
    begin(&l, &q, 0, 0);
    read_list(&l, &p, 0, 0, 60);
    end(&l, &q, 0, false);
    ok(reported(4, 0, 0, 0, 60), "a read that either may have had is no more than that");
    end(&l, &p, 0, false);
    ok(reported(3, 0, 0, 0, 60), "for both");
    forget(&l, &p);
    forget(&l, &q);
    coverage_destroy(l.coverage);
}

/* Reads that events do not show one by one. */
static void test_events(void)
{
    struct loading l;
    loading_init(&l);
    struct loaded p = follow(&l, 1, 1, 3999, 7);
    begin(&l, &p, 0, 0);
    for (uint32_t i = 0; i < 3999; i++) {
        uint32_t file = p.course->file[i];
        if (file == EMPTY) {
            coverage_event(l.coverage, file, COVERAGE_CLOSE, l.now);
            continue;
        }
        coverage_event(l.coverage, file, COVERAGE_ACCESS, l.now);
        coverage_own(l.coverage, file);
        coverage_event(l.coverage, file, COVERAGE_CLOSE, l.now); /* the loader's and the feeder's in one */
    }
    end(&l, &p, 0, false);
    ok(reported(1, 0, 3999, 0, 0) && report.again == 0, "closes come as one, an empty file is only closed");
    begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 3998);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 3998, 1, 0) && !(report.flags & FEED_MAPPED), "all reads of the next list are seen");
    begin(&l, &p, 0, 0);
    coverage_event(l.coverage, p.course->file[0], COVERAGE_ACCESS, l.now);
    coverage_lost(l.coverage, FEED_OVERFLOWED);
    coverage_event(l.coverage, p.course->file[0], COVERAGE_ACCESS, l.now);
    coverage_look(l.coverage, l.now += 2 * SECOND);
    ok(reported(1, 0, 1, 0, 3998) && report.again == 1, "after lost events a read may be another one");
    coverage_event(l.coverage, FILES, COVERAGE_ACCESS, l.now);
    coverage_own(l.coverage, FILES);
    forget(&l, &p);
    coverage_destroy(l.coverage);
}

static void test_feeder_again(void)
{
    struct loading l;
    loading_init(&l);
    struct loaded p = follow(&l, 1, 1, 400, 7);
    struct feed_asking asking = begin(&l, &p, 0, 0);
    read_list(&l, &p, 0, 0, 300);
    coverage_look(l.coverage, l.now += 2 * SECOND);
    coverage_publish(p.plan, 0, &feed->rank[1][0]);
    atomic_store(&feed->rank[1][0].number, 1);
    forget(&l, &p);
    coverage_destroy(l.coverage);

    if (coverage_create(feed, FILES, &rules, &l.coverage) != 0)
        exit(1);
    p = follow(&l, 1, 1, 400, 7);
    coverage_begin(l.coverage, p.plan, 0, &asking, 0);
    read_list(&l, &p, 0, 310, 400);
    end(&l, &p, 0, false);
    ok(reported(1, 0, 300, 0, 100) && report.flags & FEED_UNWATCHED, "another feeder knows what it did not see");
    is_int(atomic_load(&feed->reports), 1, "and goes on with the report");
    forget(&l, &p);
    coverage_destroy(l.coverage);

    if (coverage_create(feed, FILES, &rules, &l.coverage) != 0)
        exit(1);
    p = follow(&l, 2, 1, 400, 7);
    feed_note_add(feed, &(struct feed_answer){.file = p.course->file[0], .bytes = 100});
    struct feed_asking late = {.asked = 99, .since = clock_now() - 10 * SECOND, .notes = atomic_load(&feed->notes)};
    for (uint32_t i = 1; i < 4; i++)
        feed_note_add(feed, &(struct feed_answer){.file = p.course->file[i], .bytes = 100});
    coverage_begin(l.coverage, p.plan, 0, &late, 0);
    read_list(&l, &p, 0, 4, 400);
    end(&l, &p, 0, false);
    ok(reported(2, 0, 396, 1, 3), "READs since the request are known, those of before do not count");
    ok(report.flags & FEED_STALLED, "that it began late is said");
    forget(&l, &p);
    coverage_destroy(l.coverage);
}

int main(void)
{
    feed = calloc(1, sizeof *feed);
    if (!feed)
        bail_out("no memory");
    test_whole();
    test_unread();
    test_others();
    test_events();
    test_feeder_again();
    free(feed);
    return done_testing();
}
