/* cli/progress: the lines, the rate, and when they are written. */
#include "cli/base/progress.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SECOND = 1000000000, MIB = 1 << 20;

static void test_count(void)
{
    static const struct {
        uint64_t number;
        const char *text;
    } table[] = {
        {0, "0"}, {999, "999"}, {1000, "1,000"}, {1281167, "1,281,167"}, {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    char text[COUNT_TEXT];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_str(count_format(table[i].number, text, sizeof text), table[i].text, "a count: %s", table[i].text);
    is_str(count_format(1234567, text, 4), "1,2", "a count that does not fit is cut and not written past the end");
}

static void is_bar(double share, int width, const char *expected)
{
    struct str s = STR_INIT;
    progress_add_bar(&s, share, width);
    is_str(s.data, expected, "a bar of %g", share);
    str_fini(&s);
}

static void test_bar(void)
{
    is_bar(-1, 4, "[....]");
    is_bar(0, 4, "[....]");
    is_bar(0.5, 4, "[##..]");
    is_bar(0.999, 4, "[###.]");
    is_bar(1, 4, "[####]");
    is_bar(7, 4, "[####]");
}

static void is_line(const struct progress_bar *p, const struct progress_now *now, int width, const char *expected)
{
    struct str s = STR_INIT;
    progress_line(p, now, width, &s);
    is_str(s.data, expected, "a line of width %d", width);
    ok(width == 0 || s.length < (size_t)width, "it fits");
    str_fini(&s);
}

static void test_line(void)
{
    struct progress_bar p = {.label = "staging", .rate = 10.0 * (double)MIB};
    struct progress_now now = {.files = 1000, .files_total = 4000, .bytes = 100 * MIB, .bytes_total = 400 * MIB};
    is_line(&p, &now, 0, "staging  25%  1,000/4,000 files  100 MiB/400 MiB  10 MiB/s  30s left");
    is_line(&p, &now, 100,
            "staging [#######.....................]  25%  1,000/4,000 files  100 MiB/400 MiB  10 MiB/s  30s left");
    is_line(&p, &now, 20, "staging  25%  1,000");
    now.bytes = now.bytes_total;
    now.files = now.files_total;
    is_line(&p, &now, 0, "staging 100%  4,000/4,000 files  400 MiB/400 MiB  10 MiB/s");
    now = (struct progress_now){.files = 7, .bytes = 3 * MIB};
    is_line(&p, &now, 60, "staging 7 files  3 MiB  10 MiB/s");
    now = (struct progress_now){.files = 30, .files_total = 60};
    p.rate = 10;
    is_line(&p, &now, 0, "staging  50%  30/60 files  10 files/s  3.0s left");
}

static void test_rate(void)
{
    struct progress_bar p = {.label = "x"};
    struct progress_now now = {.bytes_total = 1000 * MIB};
    progress_measure(&p, &now, SECOND);
    now.bytes = 10 * MIB;
    progress_measure(&p, &now, 2 * SECOND);
    is_uint((uint64_t)p.rate, 10 * MIB, "the first rate is taken as it is");
    now.bytes += MIB;
    progress_measure(&p, &now, 2 * SECOND + SECOND / 100);
    is_uint((uint64_t)p.rate, 10 * MIB, "a moment later nothing is measured");
    now.bytes = 10 * MIB;
    for (int i = 3; i < 60; i++)
        progress_measure(&p, &now, (uint64_t)i * SECOND);
    ok(p.rate < 100, "it falls towards 0 when nothing comes: %g", p.rate);
    now.bytes = 5 * MIB;
    progress_measure(&p, &now, 61 * SECOND);
    ok(p.rate >= 0, "it is never negative");
}

static void test_elsewhere(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = tmpfile();
    struct progress_bar p;
    struct progress_now now = {.files = 1, .bytes = 1, .bytes_total = 2};
    if (!f)
        bail_out("tmpfile");
    progress_begin(&p, "staging", f);
    ok(!p.terminal, "a file is no terminal");
    for (int i = 0; i < 1000; i++)
        progress_show(&p, &now);
    is_int(ftell(f), 0, "nothing is written within the first second");
    p.shown -= SECOND;
    for (int i = 0; i < 1000; i++)
        progress_show(&p, &now);
    progress_end(&p);
    rewind(f);
    ok(getline(&text, &n, f) > 0 && strncmp(text, "staging  50%", 12) == 0, "then one line");
    is_int(getline(&text, &n, f), -1, "and no other");
    free(text);
    fclose(f);
}

int main(void)
{
    test_count();
    test_bar();
    test_line();
    test_rate();
    test_elsewhere();
    return done_testing();
}
