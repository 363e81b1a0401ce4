/* fs/base/size.h: what people write, and what they are shown. */
#include "fs/base/clock.h"
#include "fs/base/size.h"
#include "tests/lib/tap.h"

#include <errno.h>

#define K UINT64_C(1024)

static void test_size_parse(void)
{
    static const struct {
        const char *text;
        int error;
        uint64_t size;
    } cases[] = {
        {"", -EINVAL, 0},
        {"G", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"1.G", -EINVAL, 0},
        {".5G", -EINVAL, 0},
        {"1.5", -EINVAL, 0},
        {"1Q", -EINVAL, 0},
        {"1GB", -EINVAL, 0},
        {"1G1", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"%", -EINVAL, 0},
        {"10%%", -EINVAL, 0},
        {"101%", -ERANGE, 0},
        {"100.1%", -ERANGE, 0},
        {"16E", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"0", 0, 0},
        {"4096", 0, 4096},
        {"18446744073709551615", 0, UINT64_MAX},
        {"1k", 0, K},
        {"512M", 0, 512 * K * K},
        {"10G", 0, 10 * K * K * K},
        {"2GiB", 0, 2 * K * K * K},
        {"1.5T", 0, 3 * K * K * K * K / 2},
        {"0.25P", 0, K * K * K * K * K / 4},
        {"0.001K", 0, 1},
        {"15E", 0, 15 * K * K * K * K * K * K},
        {"25%", 0, 250},
        {"12.5%", 0, 125},
        {"100%", 0, 1000},
        {"0%", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t size = 77;
        is_int(size_parse(cases[i].text, 1000, &size), cases[i].error, "size \"%s\"", cases[i].text);
        is_uint(size, cases[i].error ? 77 : cases[i].size, "is as it should be");
    }
    uint64_t size;
    is_int(size_parse("100%", UINT64_MAX, &size), 0, "all of the largest number");
    is_uint(size, UINT64_MAX, "is it");
}

static void test_number_parse(void)
{
    uint64_t n = 77;
    is_int(number_parse("", 0, 9, &n), -EINVAL, "no number");
    is_int(number_parse("-0", 0, 9, &n), -EINVAL, "a sign");
    is_int(number_parse("1.0", 0, 9, &n), -EINVAL, "a fraction");
    is_int(number_parse("5x", 0, 9, &n), -EINVAL, "something behind");
    is_int(number_parse("10", 0, 9, &n), -ERANGE, "too large");
    is_int(number_parse("1", 2, 9, &n), -ERANGE, "too small");
    is_int(number_parse("18446744073709551616", 0, UINT64_MAX, &n), -ERANGE, "too large for any");
    is_uint(n, 77, "nothing was written meanwhile");
    is_int(number_parse("18446744073709551615", 0, UINT64_MAX, &n), 0, "the largest");
    is_uint(n, UINT64_MAX, "is read");
    is_int(number_parse("007", 7, 7, &n), 0, "zeros before");
    is_uint(n, 7, "do not matter");
}

static void test_number_take(void)
{
    const char text[] = "12/300", *at = text, *end = text + 6;
    uint64_t n;
    ok(number_take(&at, end, 12, &n) && n == 12 && at == text + 2, "digits are taken");
    ok(!number_take(&at, end, 12, &n) && at == text + 2, "no digits");
    at++;
    ok(!number_take(&at, end, 299, &n), "too large");
    ok(!number_take(&at, end, 2, &n), "the first digit too");
    ok(number_take(&at, end - 1, 299, &n) && n == 30, "nothing behind the end");
}

static void test_millionths_parse(void)
{
    static const struct {
        const char *text;
        int error;
        uint64_t millionths;
    } cases[] = {
        {"", -EINVAL, 77},
        {".5", -EINVAL, 77},
        {"0.", -EINVAL, 77},
        {"1e0", -EINVAL, 77},
        {"0.1234567", -EINVAL, 77},
        {"-0.1", -EINVAL, 77},
        {"0.000001", -ERANGE, 77},
        {"2.000001", -ERANGE, 77},
        {"99999999999999999999", -ERANGE, 77},
        {"18446744073709551615", -ERANGE, 77},
        {"0.000002", 0, 2},
        {"0.25", 0, 250000},
        {"1", 0, 1000000},
        {"2.000000", 0, 2000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t n = 77;
        is_int(millionths_parse(cases[i].text, 2, 2 * MILLION, &n), cases[i].error, "millionths of \"%s\"",
               cases[i].text);
        is_uint(n, cases[i].millionths, "are as they should be");
    }
}

static void test_duration_parse(void)
{
    static const struct {
        const char *text;
        int error;
        uint64_t nanoseconds;
    } cases[] = {
        {"", -EINVAL, 0},
        {"d", -EINVAL, 0},
        {"-1s", -EINVAL, 0},
        {"1w", -EINVAL, 0},
        {"1 s", -EINVAL, 0},
        {"1sm", -EINVAL, 0},
        {"213504d", -ERANGE, 0},
        {"7d", 0, 7 * 86400 * SECOND},
        {"12h", 0, 12 * 3600 * SECOND},
        {"30m", 0, 30 * 60 * SECOND},
        {"10s", 0, 10 * SECOND},
        {"10", 0, 10 * SECOND},
        {"0", 0, 0},
        {"0.5", 0, SECOND / 2},
        {"1.5m", 0, 90 * SECOND},
        {"200ms", 0, SECOND / 5},
        {"0.000000001", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ns = 77;
        is_int(duration_parse(cases[i].text, &ns), cases[i].error, "duration \"%s\"", cases[i].text);
        is_uint(ns, cases[i].error ? 77 : cases[i].nanoseconds, "is as it should be");
    }
}

static void test_format(void)
{
    static const struct {
        uint64_t size;
        const char *text;
    } sizes[] = {
        {0, "0 B"},        {1023, "1023 B"},        {1024, "1 KiB"},
        {1536, "1.5 KiB"}, {112 * K, "112 KiB"},    {K * K - 1, "1.0 MiB"},
        {K * K, "1 MiB"},  {1503238553, "1.4 GiB"}, {UINT64_MAX, "16.0 EiB"},
    };
    static const struct {
        uint64_t nanoseconds;
        const char *text;
    } durations[] = {
        {0, "0us"},
        {999999, "999us"},
        {12 * SECOND / 1000, "12ms"},
        {5 * SECOND / 2, "2.5s"},
        {59 * SECOND, "59s"},
        {192 * SECOND, "3m12s"},
        {3661 * SECOND, "1h01m"},
        {90000 * SECOND, "1d1h"},
        {UINT64_MAX, "213503d23h"},
    };
    char buffer[SIZE_TEXT];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        is_str(size_format(sizes[i].size, buffer, sizeof buffer), sizes[i].text, "%ju bytes", (uintmax_t)sizes[i].size);
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        is_str(duration_format(durations[i].nanoseconds, buffer, sizeof buffer), durations[i].text, "%ju ns",
               (uintmax_t)durations[i].nanoseconds);
}

int main(void)
{
    test_size_parse();
    test_number_parse();
    test_number_take();
    test_millionths_parse();
    test_duration_parse();
    test_format();
    return done_testing();
}
