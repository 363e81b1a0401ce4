/* What two statuses tell: rates, each rank's list; and statuses that nobody should believe. */
#include "cli/live/gauges.h"

#include "tests/lib/tap.h"

#include <stdio.h>
#include <string.h>

static const struct str nothing = STR_INIT;

/* So many plans of so many ranks, of which each list has been read up to `read`. */
static void write_plans(struct str *text, unsigned plans, unsigned ranks, unsigned read)
{
    str_adds(text, "{\"state\":\"alone\",\"nodes\":1,\"node\":0,\"feed\":{\"plans\":[");
    for (unsigned p = 0; p < plans; p++) {
        str_addf(text, "%s{\"number\":%u,\"epoch\":%u,\"ranks\":[", p ? "," : "", p + 1, p);
        for (unsigned r = 0; r < ranks; r++)
            str_addf(text, "%s{\"rank\":%u,\"samples\":1000,\"read\":%u,\"ended\":%s}", r ? "," : "", r,
                     p + 1 < plans ? 1000 : read, p + 1 < plans ? "true" : "false");
        str_adds(text, "],\"guessed\":false}");
    }
    str_adds(text, "]}}");
}

static void test_ranks(void)
{
    CLEANUP_STR struct str before = STR_INIT, now = STR_INIT;
    struct node_gauge g = {.mountpoint = "/m"};
    write_plans(&before, 8, GAUGE_RANKS, 100);
    write_plans(&now, 8, GAUGE_RANKS, 300);
    gauge_read(&before, &now, 2, &g);
    ok(g.ranks == GAUGE_RANKS && g.rank[63].rank == 63 && g.rank[63].epoch == 7, "each rank's list that is read");
    ok(g.rank[63].files == 100 && g.files == 6400, "how fast");
    gauge_read(&nothing, &now, 0, &g);
    ok(g.ranks == GAUGE_RANKS && g.files == 0, "nothing before: no rates");
    str_clear(&now);
    write_plans(&now, 300, 100, 300);
    gauge_read(&now, &now, 1, &g);
    ok(g.ranks == GAUGE_RANKS, "more than there can be");
}

static void test_choice(void)
{
    static const struct {
        const char *lists;
        uint64_t epoch;
        const char *what;
    } cases[] = {
        {"1 10 500 false, 2 0 0 false", 1, "the one that is read, not the next"},
        {"2 40 900 false, 1 60 5 false", 1, "that which was read last, in whatever order they stand"},
        {"1 10 5 true, 3 0 0 false, 2 0 0 false", 2, "the next, where one is over"},
        {"1 10 900 true, 2 10 5 true", 2, "the last, where all are"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP_STR struct str text = STR_INIT;
        struct node_gauge g = {.mountpoint = "/m"};
        unsigned epoch, read, idle, number = 0;
        char ended[8];
        int used;
        str_adds(&text, "{\"feed\":{\"plans\":[");
        for (const char *at = cases[i].lists;
             sscanf(at, " %u %u %u %5[a-z]%n", &epoch, &read, &idle, ended, &used) == 4; at += used, at += *at == ',')
            str_addf(&text,
                     "%s{\"number\":%u,\"epoch\":%u,\"ranks\":[{\"rank\":0,\"samples\":100,\"read\":%u,"
                     "\"idle_ms\":%u,\"ended\":%s}]}",
                     number ? "," : "", number + 1, epoch, read, idle, ended),
                number++;
        str_adds(&text, "]}}");
        gauge_read(&nothing, &text, 0, &g);
        is_uint(g.ranks, 1, "one line for a rank");
        is_uint(g.rank[0].epoch, cases[i].epoch, "%s", cases[i].what);
    }
}

static void test_odd(void)
{
    static const char *const odd[] = {
        "{\"nodes\":18446744073709551615,\"world\":[{\"answers\":1,\"answer_us\":5},7,null]}",
        "{\"feed\":{\"plans\":[{\"ranks\":[{\"samples\":1,\"read\":18446744073709551615}]},3]},\"world\":3}",
        "{\"feed\":{\"plans\":[{\"ranks\":[",
        "[",
        "",
    };
    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
        CLEANUP_STR struct str text = STR_INIT, out = STR_INIT;
        struct node_gauge g = {.mountpoint = "/m"};
        str_adds(&text, odd[i]);
        gauge_read(&nothing, &text, 1, &g);
        gauge_read(&text, &text, 1, &g);
        gauges_add_lines(&out, &g);
        ok(!out.failed && strncmp(out.data, "/m ", 3) == 0, "an odd status: %s", odd[i]);
    }
    CLEANUP_STR struct str text = STR_INIT, out = STR_INIT;
    struct node_gauge g = {.mountpoint = "/m"};
    str_adds(&text, "{\"nodes\":2,\"state\":\"\\u001b[2Jgone\"}");
    gauge_read(&nothing, &text, 1, &g);
    gauges_add_lines(&out, &g);
    ok(!strchr(out.data, 27) && strstr(out.data, "gone"), "what a terminal would obey is not said to it");
}

/* Of a busy node with a long name, each line has 80 columns at most, and those that are waited for are named. */
static void test_width(void)
{
    CLEANUP_STR struct str text = STR_INIT, out = STR_INIT;
    struct node_gauge g = {.mountpoint = "/a/very/long/path/of/a/mount/of/node17"};
    str_adds(&text, "{\"node\":17,\"nodes\":4096,\"state\":\"degraded\",\"world\":[{\"answers\":0,\"answer_us\":0},"
                    "{\"answers\":10,\"answer_us\":123456}],\"slowest\":{\"path\":\"train/a/very/long/class of "
                    "samples/\\u001b[2Jn01440764_000018.JPEG\",\"from\":\"source\","
                    "\"us\":12345678},\"bytes\":{\"ram\":99999999999,\"ssd\":123456789,"
                    "\"peer\":98765432,\"source\":12345678},\"fed\":{\"waits\":{\"ram\":0,\"peer\":3,\"source\":17}},"
                    "\"feed\":{\"ahead\":268435456,\"plans\":[{\"number\":1,\"epoch\":1234,\"guessed\":true,\"ranks\":["
                    "{\"rank\":16383,\"samples\":10000,\"read\":5000,\"ahead\":268435456,\"late\":12345},"
                    "{\"rank\":2,\"samples\":100,\"read\":5,\"late\":7}]}]}}");
    struct str nothing_before = STR_INIT;
    gauge_read(&nothing_before, &text, 1, &g);
    gauges_add_head(&out);
    gauges_add_lines(&out, &g);
    int widest = 0;
    for (const char *at = out.data, *end; (end = strchr(at, '\n')); at = end + 1)
        widest = end - at > widest ? (int)(end - at) : widest;
    ok(widest > 70 && widest <= 80, "80 columns: %d", widest);
    ok(strstr(out.data, "...mount/of/node17"), "the end of a long path is shown");
    ok(strstr(out.data, "\n  node 17 of 4096 degraded\n"), "the node has a line");
    ok(strstr(out.data, "\n  slow: rank 16383 (12345 late), node 1 (12.3 ms), source (17 reads wait)\n"),
       "who is slow is named: %s", out.data);
    ok(strstr(out.data, "\n  slowest sample: 12346 ms from source: ...") && !strchr(out.data, 27) &&
           strstr(out.data, "/\\x1b[2Jn01440764_000018.JPEG\n"),
       "so is the sample that was waited for, by the end of its path: %s", out.data);
    ok(strstr(out.data, "1234?  50%"), "a rank's epoch and progress");
}

static void test_lines(void)
{
    static const struct {
        const char *format, *expected;
    } cases[] = {
        {"{n} of {big count}, {big size}|{n number 3}|{n number -3}|", "1 of 1,234,567, 1.2 MiB|  1|1  |"},
        {"{n|sample was|samples were} {big|read|reads} {o.us us}", "sample was reads 2ms"},
        {"{s text 6}{s text} {none text} {none} {o text}", " a\\x1ba\\x1b - 0 -"},
        {"{n", "1"},
        {"{}{", ""},
    };
    const struct str json = {.data = "{\"n\":1,\"big\":1234567,\"s\":\"a\\u001b\",\"o\":{\"us\":2000}}",
                             .length = strlen(json.data)};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP_STR struct str out = STR_INIT;
        figures_add(&out, &json, "%s", cases[i].format);
        is_str(out.data ? out.data : "", cases[i].expected, "%s", cases[i].format);
    }
}

int main(void)
{
    test_lines();
    test_ranks();
    test_choice();
    test_odd();
    test_width();
    return done_testing();
}
