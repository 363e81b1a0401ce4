/* fs/base/json.h: what is written is JSON, and single values are found again. */
#include "fs/base/json.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void test_writer(void)
{
    CLEANUP_STR struct str s = STR_INIT;
    struct json j = {.out = &s};
    json_begin_object(&j, NULL);
    json_begin_object(&j, "empty");
    json_end_object(&j);
    json_begin_array(&j, "list");
    json_uint(&j, NULL, UINT64_MAX);
    json_int(&j, NULL, INT64_MIN);
    json_begin_array(&j, NULL);
    json_end_array(&j);
    json_begin_object(&j, NULL);
    json_bool(&j, "yes", true);
    json_bool(&j, "no", false);
    json_end_object(&j);
    json_end_array(&j);
    json_string(&j, "none", NULL);
    json_fixed(&j, "fixed", 2.345, 1);
    json_fixed(&j, "nan", NAN, 1);
    json_string(&j, "a\"b", "");
    json_end_object(&j);
    is_str(s.data,
           "{\"empty\":{},\"list\":[18446744073709551615,-9223372036854775808,[],{\"yes\":true,\"no\":false}],"
           "\"none\":null,\"fixed\":2.3,\"nan\":null,\"a\\\"b\":\"\"}",
           "commas are where they belong");
}

static void test_indented(void)
{
    static const char *const hundred =
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
    CLEANUP_STR struct str s = STR_INIT;
    struct json j = {.out = &s, .indent = true};
    json_uint(&j, NULL, 1);
    is_str(s.data, "1", "a value alone");
    str_clear(&s);
    j = (struct json){.out = &s, .indent = true};
    json_begin_object(&j, NULL);
    json_begin_object(&j, "none");
    json_end_object(&j);
    json_begin_object(&j, "outer");
    json_begin_array(&j, "small");
    json_uint(&j, NULL, 1);
    json_string(&j, NULL, "{,:}\"\n");
    json_end_array(&j);
    json_uint(&j, "after", 2);
    json_end_object(&j);
    json_begin_array(&j, "long");
    json_string(&j, NULL, hundred);
    json_string(&j, NULL, hundred + 40);
    json_end_array(&j);
    json_end_object(&j);
    is_str(s.data,
           "{\n"
           "  \"none\": {},\n"
           "  \"outer\": {\n"
           "    \"small\": [1, \"{,:}\\\"\\n\"],\n"
           "    \"after\": 2\n"
           "  },\n"
           "  \"long\": [\n"
           "    "
           "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\",\n"
           "    \"012345678901234567890123456789012345678901234567890123456789\"\n"
           "  ]\n"
           "}",
           "a line each value, or small group");
    str_clear(&s);
    j = (struct json){.out = &s, .indent = true};
    json_begin_array(&j, NULL);
    json_end_array(&j);
    is_str(s.data, "[]", "an empty group");
}

static void test_strings(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
    } cases[] = {
        {"plain", 5, "\"plain\""},
        {"\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", 3, "\"\\u0001\\u001f\x7f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9f", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9f\""},
        {"\xe9", 1, "\"\\u00e9\""},
        {"\xc3", 1, "\"\\u00c3\""},
        {"\xc0\x80", 2, "\"\\u00c0\\u0080\""},
        {"\xed\xa0\x80", 3, "\"\\u00ed\\u00a0\\u0080\""},
        {"\xf4\x90\x80\x80", 4, "\"\\u00f4\\u0090\\u0080\\u0080\""},
        {"\xe2\x82"
         "a",
         3, "\"\\u00e2\\u0082a\""},
        {"\xff\xfe", 2, "\"\\u00ff\\u00fe\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP_STR struct str s = STR_INIT, back = STR_INIT;
        struct json j = {.out = &s};
        json_string(&j, NULL, cases[i].bytes);
        is_str(s.data, cases[i].text, "string %zu is escaped", i);
        is_int(json_find_string(s.data, s.length, "", &back), 0, "and read");
        ok(back.length == cases[i].n && memcmp(back.data, cases[i].bytes, back.length) == 0, "as the same bytes");
    }
}

static const char text[] =
    " { \"a\" : { \"b\" : [ 10 , {\"c\\u0064\":\"x\\u20ac\\ud83d\\udc1f\\n\"}, -1.5e+3, true ] } ,"
    "\"n\":null,\"big\":18446744073709551616,\"f\":1.5,\"\":{\"\":3}}";

static void test_find(void)
{
    static const struct {
        const char *path, *value;
    } found[] = {
        {"a.b.0", "10"},      {"a.b.1.cd", "\"x\\u20ac\\ud83d\\udc1f\\n\""},
        {"a.b.2", "-1.5e+3"}, {"a.b.3", "true"},
        {"n", "null"},        {"a.b.1", "{\"c\\u0064\":\"x\\u20ac\\ud83d\\udc1f\\n\"}"},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        const char *value = NULL;
        long n = json_find(text, sizeof text - 1, found[i].path, &value);
        ok(n == (long)strlen(found[i].value) && value && memcmp(value, found[i].value, (size_t)n) == 0, "%s is %s",
           found[i].path, found[i].value);
    }
    static const char *const missing[] = {
        "b", "a.c", "a.b.4", "a.b.x", "a.b.-1", "a.b.0.0", "n.x", "a.b.1.c", "a.b.99999999999999999999"};
    const char *value = text;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        is_int(json_find(text, sizeof text - 1, missing[i], &value), -ENOENT, "%s is not there", missing[i]);
    ok(value == text, "and nothing was written");
}

static void test_types(void)
{
    uint64_t n = 7;
    CLEANUP_STR struct str s = STR_INIT;
    is_int(json_find_uint(text, sizeof text - 1, "a.b.0", &n), 0, "a number");
    is_uint(n, 10, "is read");
    is_int(json_find_uint(text, sizeof text - 1, "a.b.2", &n), -EINVAL, "a negative one is no unsigned");
    is_int(json_find_uint(text, sizeof text - 1, "f", &n), -EINVAL, "nor is a fraction");
    is_int(json_find_uint(text, sizeof text - 1, "n", &n), -EINVAL, "nor null");
    is_int(json_find_uint(text, sizeof text - 1, "big", &n), -ERANGE, "nor 2^64");
    is_uint(n, 10, "and nothing was written");
    is_int(json_find_string(text, sizeof text - 1, "a.b.0", &s), -EINVAL, "a number is no string");
    is_int(json_find_string(text, sizeof text - 1, "zz", &s), -ENOENT, "what is missing is no string");
    str_adds(&s, "<");
    is_int(json_find_string(text, sizeof text - 1, "a.b.1.cd", &s), 0, "a string");
    is_str(s.data, "<x\xe2\x82\xac\xf0\x9f\x90\x9f\n", "is appended without its escapes");
}

static void test_malformed(void)
{
    static const char *const bad[] = {
        "",           " ",           "{",           "[",           "[1",
        "[1,",        "[1,]",        "{\"a\"",      "{\"a\":",     "{\"a\":}",
        "{\"a\":1,}", "{a:1}",       "\"",          "\"\\",        "\"\\x\"",
        "\"\\u12\"",  "\"\\u12g4\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"",
        "\"\n\"",     "-",           "1.",          "1e",          "1e+",
        "tru",        "nul",         "nope",        "'a'",         "}",
        ":",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        /* A copy of exactly this length, so that a sanitizer sees a look past it. */
        CLEANUP_STR struct str copy = STR_INIT;
        str_adds(&copy, bad[i]);
        const char *value;
        is_int(json_find(copy.data, copy.length, "", &value), -EBADMSG, "'%s' is not JSON", bad[i]);
    }
    char deep[4096];
    memset(deep, '[', sizeof deep);
    const char *value;
    is_int(json_find(deep, sizeof deep, "", &value), -EBADMSG, "4096 arrays in each other are refused");
    size_t survived = 0;
    for (size_t n = 0; n < sizeof text - 1; n++)
        survived += json_find(text, n, "", &value) == -EBADMSG;
    is_uint(survived, sizeof text - 1, "every beginning of a text is refused");
}

static void test_next(void)
{
    static const char array[] = " [1, \"a]\" ,{\"b\":[2,3]} ]", empty[] = "[ ]";
    static const char *const expected[] = {"1", "\"a]\"", "{\"b\":[2,3]}"}, *const bad[] = {"", "1", "[", "[1 2]",
                                                                                            "[1,]"};
    const char *rest = array, *value;
    size_t n = sizeof array - 1;
    for (size_t i = 0; i < 3; i++) {
        long length = json_next(&rest, &n, &value);
        is_int(length, strlen(expected[i]), "element %zu", i);
        is_mem(value, expected[i], strlen(expected[i]), "is %s", expected[i]);
    }
    is_int(json_next(&rest, &n, &value), -ENOENT, "then no more");
    is_int(json_next(&rest, &n, &value), -ENOENT, "and no more");
    rest = empty;
    n = sizeof empty - 1;
    is_int(json_next(&rest, &n, &value), -ENOENT, "none of an empty array");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        long length = 0;
        rest = bad[i];
        n = strlen(bad[i]);
        while (length >= 0)
            length = json_next(&rest, &n, &value);
        is_int(length, -EBADMSG, "'%s' is no array", bad[i]);
    }
}

int main(void)
{
    test_next();
    test_malformed();
    test_writer();
    test_indented();
    test_strings();
    test_find();
    test_types();
    return done_testing();
}
