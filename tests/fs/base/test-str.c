/* fs/base/str.h: growing, failing, the two codings. */
#include "fs/base/str.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_failure(void)
{
    CLEANUP_STR struct str s = STR_INIT;
    str_adds(&s, "kept");
    ok(!str_reserve(&s, SIZE_MAX), "a length that cannot be is refused");
    ok(s.failed, "and remembered");
    str_adds(&s, "lost");
    str_addf(&s, "%d", 1);
    is_str(s.data, "kept", "after that nothing is added");
    ok(!str_reserve(&s, 1), "nor reserved");
    ok(!str_steal(&s), "stealing a failed string gives NULL");
    ok(!s.failed && !s.data, "and leaves an empty one");
}

static void test_growing(void)
{
    CLEANUP_STR struct str s = STR_INIT;
    str_add(&s, NULL, 0);
    ok(s.data && s.length == 0 && s.data[0] == '\0', "adding nothing makes it a text");
    for (int i = 0; i < 10000; i++)
        str_addf(&s, "%d,", i);
    is_uint(s.length, 48890, "10,000 numbers were added");
    is_str(s.data + s.length - 10, "9998,9999,", "the last of them");
    str_clear(&s);
    is_str(s.data, "", "cleared");
    str_add(&s, "a\0b", 3);
    is_mem(s.data, "a\0b", 4, "NUL bytes are bytes, and one follows");
    char big[1000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    str_addf(&s, "<%s>", big);
    is_uint(s.length, 3 + 2 + 999, "a format longer than the first try");
    ok(s.data[s.length - 1] == '>' && s.data[s.length] == '\0', "ends as it should");
    for (int n = 125; n < 132; n++) {
        str_clear(&s);
        str_addf(&s, "%.*s", n, big);
        is_uint(strlen(s.data), (unsigned)n, "a format of %d bytes", n);
    }
}

static void test_steal(void)
{
    struct str s = STR_INIT;
    char *text = str_steal(&s);
    is_str(text, "", "an empty string steals as \"\"");
    free(text);
    str_adds(&s, "abc");
    text = str_steal(&s);
    is_str(text, "abc", "stolen");
    ok(!s.data && s.length == 0 && s.capacity == 0, "and the string is empty");
    free(text);
}

static void test_percent(void)
{
    char all[256], text[8];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    CLEANUP_STR struct str s = STR_INIT;
    str_add_percent(&s, all, sizeof all);
    ok(!strpbrk(s.data, " \n,=\"'\\"), "no separator survives encoding");
    is_int(percent_decode(s.data, s.length), 256, "256 bytes decode to as many");
    is_mem(s.data, all, sizeof all, "and to the same");
    is_int(s.data[256], 0, "followed by a NUL");
    str_clear(&s);
    str_add_percent(&s, "/data/Az09._-:+@", 16);
    is_str(s.data, "/data/Az09._-:+@", "these are left as they are");

    static const char *const bad[] = {"%", "%4", "a%", "%g0", "%0g", "%-1", "% 1", "ok%4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "%s", bad[i]);
        is_int(percent_decode(text, strlen(text)), -EINVAL, "\"%s\" is refused", bad[i]);
        is_str(text, bad[i], "and left alone");
    }
    memcpy(text, "%41%42x", 8);
    is_int(percent_decode(text, 4), -EINVAL, "an escape does not reach past the end");
    is_int(percent_decode(text, 7), 3, "%%41%%42x");
    is_str(text, "ABx", "is ABx");
}

static void test_printable(void)
{
    CLEANUP_STR struct str s = STR_INIT;
    str_add_printable(&s, "a b\n\\\x7f\xff\0~", 9);
    is_str(s.data, "a b\\x0a\\x5c\\x7f\\xff\\x00~", "a name for people is one line");
}

static void test_shown(void)
{
    static const char said[] = "\x1b]0;owned\a\x7f\xc2\x9b"
                               "2J \x9b\r\xff caf\xc3\xa9\t\\n\n";
    CLEANUP_STR struct str s = STR_INIT;
    str_add_shown(&s, said, sizeof said - 1);
    is_str(s.data,
           "\\u001b]0;owned\\u0007\\u007f\\u009b"
           "2J \\udc9b\\u000d\\udcff caf\xc3\xa9\t\\n\n",
           "another process's text steers no terminal");
}

static void lines(const char *text, size_t n, char separator, const char *expected)
{
    struct str all = STR_INIT;
    const char *line;
    size_t length;
    str_adds(&all, "");
    while (text_line(&text, &n, separator, &line, &length)) {
        str_adds(&all, "[");
        str_add(&all, line, length);
        str_adds(&all, "]");
    }
    is_str(all.data, expected, "lines %s", expected);
    str_fini(&all);
}

static void test_lines(void)
{
    lines("", 0, '\n', "");
    lines("\n", 1, '\n', "[]");
    lines("a", 1, '\n', "[a]");
    lines("a\n", 2, '\n', "[a]");
    lines("a\nb", 3, '\n', "[a][b]");
    lines("a\r\n\r\nb\r", 7, '\n', "[a][][b]");
    lines("a\n\0b\0", 5, '\0', "[a\n][b]");
    lines("a\r\0b", 4, '\0', "[a\r][b]");
}

int main(void)
{
    test_failure();
    test_growing();
    test_steal();
    test_percent();
    test_printable();
    test_shown();
    test_lines();
    return done_testing();
}
