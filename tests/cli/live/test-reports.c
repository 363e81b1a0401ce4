/* What is said of an epoch: that all was read, what was not, and plainly when it is not known. */
#include "cli/live/reports.h"

#include "tests/lib/tap.h"

#include <stdio.h>
#include <string.h>

static struct str words;
static bool incomplete;

/* One report: its number, epoch and rank, and what else there is of it. */
static void add(struct str *text, const char *numbers, const char *rest)
{
    str_adds(text, text->length ? ",\n" : "[\n");
    str_addf(text, "{%s, \"samples\": 1000, \"bytes\": 2097152, \"read\": 997, \"looks\": 100, %s}", numbers, rest);
}

static const char *say(const char *rest)
{
    CLEANUP_STR struct str text = STR_INIT, array = STR_INIT;
    add(&text, "\"number\": 1, \"epoch\": 7, \"rank\": 2", rest);
    str_adds(&text, "]\n");
    str_clear(&words);
    reports_select(&text, &(struct reports_wish){.epoch = 7}, &array);
    incomplete = reports_add_words("/mnt/data", &array, &words);
    return words.data ? words.data : "";
}

static void like(const char *rest, bool missing, const char *expected, const char *what)
{
    const char *said = say(rest);
    ok(strstr(said, expected) && incomplete == missing, "%s", what);
    if (!strstr(said, expected))
        fprintf(stderr, "# said: %s\n", said);
}

static void test_words(void)
{
    like("\"coverage\": \"complete\", \"ended\": true", false,
         "/mnt/data   epoch 7\n  rank 2    1,000 samples, 2 MiB: every planned sample was read, at least in part\n",
         "all was read");
    like("\"coverage\": \"complete\", \"ended\": true, \"overflowed\": true", false,
         "every planned sample was read, at least in part\n", "all was seen to be read, whatever else was not seen");
    like(
        "\"coverage\": \"unknown\", \"ended\": true, \"again\": 2", false,
        "every planned sample was read; it is not known whether this loader read them: files were read more often than "
        "planned; 2 repeated reads",
        "some again");
    like("\"coverage\": \"unknown\", \"ended\": true, \"stalled\": true", false, "the feeder was stopped", "late");
    like("\"coverage\": \"incomplete\", \"ended\": true, \"unread\": 2, \"missed\": "
         "[{\"position\": 3, \"path\": \"a/b.jpg\"}, {\"position\": 5, \"path\": \"c\\nd\"}]",
         true, "2 samples were not read\n            not read    a/b.jpg\n                        c\\x0ad\n",
         "which were not, by names that forge no line");
    like("\"coverage\": \"incomplete\", \"ended\": true, \"unread\": 300, \"missed\": [{\"path\": \"x\"}]", true,
         "and 299 more", "how many are not named");
    like("\"coverage\": \"incomplete\", \"ended\": true, \"unread\": 3, \"unsure\": 2", true,
         "3 samples were not read; of 2 more it is not known: another list or program", "a part is not known");
    like("\"coverage\": \"unknown\", \"ended\": true, \"unsure\": 3, \"overflowed\": true", false,
         "997 read, at least in part; it is not known whether the other 3 samples were read: the kernel dropped events",
         "lost events");
    like("\"coverage\": \"unknown\", \"ended\": true, \"unsure\": 3, \"mapped\": true", false,
         "samples were read: programs opened files without reading them", "mapped files");
    like("\"coverage\": \"unknown\", \"ended\": true, \"unsure\": 3, \"partly\": true", false,
         "samples were read: not all directories are watched", "too few watches");
    like("\"coverage\": \"unknown\", \"ended\": true, \"unsure\": 3, \"unwatched\": true", false,
         "samples were read: the feeder did not watch all the time", "another feeder");
    like("\"coverage\": \"unknown\", \"ended\": true, \"unsure\": 3, \"stopped\": true", false,
         "samples were read: the loader stopped before the end", "a loader that stops early");
    like("\"coverage\": \"unknown\", \"ended\": false, \"unsure\": 3", false, "997 read so far (99 %)",
         "an epoch that goes on");
    like("\"coverage\": \"complete\", \"late\": {\"samples\": 3, \"sum_us\": 5000000, \"most_us\": 2000000, "
         "\"from\": {\"ram\": 0, \"ssd\": 0, \"peer\": 1, \"source\": 2}}",
         false, "late        3 samples, 2.0s at most, 5.0s together; from peer 1, source 2", "what came late");
    like("\"coverage\": \"complete\", \"unplanned\": 1, \"strange\": [\"val/1.jpg\"]", false,
         "besides   1 read of a file in no list here\n            not planned val/1.jpg\n", "what was not planned");
    like("\"coverage\": \"complete\", \"behind\": 83, \"behind_most\": 212", false,
         "behind    rank 2 was the last in 83 % of the time, by 212 samples at most", "who was behind");
}

static int count_of(const char *text, bool latest, uint64_t epoch, struct str *array)
{
    const struct str all = {.data = (char *)text, .length = strlen(text)};
    str_clear(array);
    return reports_select(&all, &(struct reports_wish){.latest = latest, .epoch = epoch}, array);
}

static void test_select(void)
{
    static const char text[] = "[{\"number\": 1, \"epoch\": 3}, {\"number\": 4, \"epoch\": 4, \"rank\": 0},\n"
                               " {\"number\": 4, \"asked\": 9, \"epoch\": 4, \"rank\": 1},\n"
                               " {\"number\": 7, \"asked\": 8, \"epoch\": 3}]";
    CLEANUP_STR struct str array = STR_INIT;
    is_int(count_of("", true, 0, &array), -74, "no array");
    is_int(count_of("[\n]\n", true, 0, &array), 0, "none");
    is_str(array.data, "[\n]\n", "is none");
    is_int(count_of(text, true, 0, &array), 2, "the plan that was asked for last");
    ok(strstr(array.data, "\"rank\": 1") && !strstr(array.data, "\"epoch\": 3"), "is that");
    is_int(count_of(text, false, 3, &array), 2, "two plans of one epoch");
    is_int(count_of(text, false, 9, &array), 0, "an epoch that was not");
    is_int(count_of("[{\"number\": 1,", true, 0, &array), 0, "cut short");
}

/* Each of a plan of its own: the words go through all of them for each plan. */
static void test_too_many(void)
{
    CLEANUP_STR struct str text = STR_INIT, array = STR_INIT;
    for (unsigned n = 1; n <= 100000; n++) {
        CLEANUP_STR struct str numbers = STR_INIT;
        str_addf(&numbers, "\"number\": %u, \"epoch\": 7, \"rank\": 0", n);
        add(&text, numbers.data, "\"ended\": true");
    }
    str_adds(&text, "]\n");
    is_int(reports_select(&text, &(struct reports_wish){.epoch = 7}, &array), 256, "more than a mount keeps");
    str_clear(&words);
    reports_add_words("/mnt/data", &array, &words);
    ok(!words.failed && words.length > 0, "said in words");
}

int main(void)
{
    test_words();
    test_select();
    test_too_many();
    str_fini(&words);
    return done_testing();
}
