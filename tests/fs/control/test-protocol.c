/* The parser of requests: what it refuses, and in which words; what it accepts. */
#include "fs/control/protocol.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCH, RANKS, RANK, UNDER, REPLY, KEYS };
static const struct key deal_keys[] = {
    [EPOCH] = {.name = "epoch", .value = "E", .required = true},
    [RANKS] = {.name = "ranks", .value = "R"},
    [RANK] = {.name = "rank", .value = "r"},
    [UNDER] = {.name = "under", .value = "DIR"},
    [REPLY] = {.name = "reply", .choices = "text|u32|u64"},
    [KEYS] = {0},
};
static const struct key list_keys[] = {REQUEST_SEP, {0}};
static const struct key no_keys[] = {{0}};

static const struct verb verb_plan = {.name = "plan", .keys = deal_keys};
static const struct verb verb_list = {.name = "list", .keys = list_keys, .payload_most = 100};
static const struct verb verb_bare = {.name = "bare", .keys = no_keys};
static const struct verb *const verbs[] = {&verb_plan, &verb_list, &verb_bare, NULL};

struct refusal {
    const char *text, *words; /* words: must be in the reason */
};

static void test_refusals(void)
{
    static const struct refusal table[] = {
        {"", "known verbs: plan, list, bare"},
        {"\n", "the first line is empty"},
        {"   \r\n", "the first line is empty"},
        {"=\n", "unknown verb `=`"},
        {"plam epoch=1\n", "did you mean `plan`?"},
        {"PLAN epoch=1\n", "unknown verb `PLAN`"},
        {"something epoch=1\n", "unknown verb `something`; known verbs: plan"},
        {"\x01\xff evil\n", "unknown verb `\\x01\\xff`"},
        {"plan\n", "`plan` needs `epoch=…`"},
        {"plan ranks=3\n", "`plan` needs `epoch=…`"},
        {"plan epoch\n", "`epoch` is not of the form key=value"},
        {"plan =3\n", "`=3` is not of the form key=value"},
        {"plan epoch=1 rnak=2\n", "unknown key `rnak` for `plan`. Did you mean `rank`"},
        {"plan epoch=1 epochs=2\n", "Did you mean `epoch`"},
        {"plan epoch=1 epoch=1\n", "`epoch` is given twice"},
        {"plan epoch=1 reply=u16\n", "`reply=u16` is not one of text|u32|u64"},
        {"plan epoch=1 reply=\n", "`reply=` is not one of"},
        {"plan epoch=1 reply=u32|u64\n", "is not one of"},
        {"plan epoch=1 under=%\n", "bad escape"},
        {"plan epoch=1 under=%4\n", "bad escape"},
        {"plan epoch=1 under=%zz\n", "bad escape"},
        {"plan epoch=1 under=%00\n", "bad escape"},
        {"bare a=b\n", "unknown key `a` for `bare`, which takes no keys"},
        {"bare\nx", "`bare` takes nothing after its first line"},
        {"plan epoch=1\npayload", "`plan` takes nothing after its first line"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct request request = REQUEST_INIT;
        struct str why = STR_INIT;
        int error = request_parse(verbs, table[i].text, strlen(table[i].text), &request, &why);
        is_int(error, -EINVAL, "refused: %zu", i);
        ok(why.length > 0 && strstr(why.data, table[i].words), "%s", why.length ? why.data : "no reason");
        ok(why.length > 0 && !strchr(why.data, '\n'), "in one line");
        request_fini(&request);
        str_fini(&why);
    }
}

static void test_nul(void)
{
    struct request request = REQUEST_INIT;
    struct str why = STR_INIT;
    is_int(request_parse(verbs, "plan epoch=1\0x", 14, &request, &why), -EINVAL, "a NUL byte in a value is refused");
    request_fini(&request);
    str_fini(&why);
}

static void test_long_line(void)
{
    size_t n = REQUEST_LINE_MOST + 1;
    char *line = malloc(n);
    struct request request = REQUEST_INIT;
    struct str why = STR_INIT;
    memset(line, 'a', n);
    is_int(request_parse(verbs, line, n, &request, &why), -E2BIG, "a line that is too long");
    request_fini(&request);
    str_clear(&why);
    is_int(request_parse(verbs, line, n - 1, &request, &why), -EINVAL, "the longest is only unknown");
    ok(why.length < 300, "its words are cut");
    request_fini(&request);
    str_fini(&why);
    free(line);
}

static void accept(const char *text, size_t n, struct request *request)
{
    struct str why = STR_INIT;
    *request = (struct request)REQUEST_INIT;
    ok(request_parse(verbs, text, n, request, &why) == 0, "accepted%s%s", why.length ? ": " : "",
       why.length ? why.data : "");
    str_fini(&why);
}

static void test_accepted(void)
{
    struct request r;
    accept("plan epoch=7 under=a%20b%2Cc%0Ad%25", 35, &r);
    is_str(r.value[EPOCH].text, "7", "a value");
    is_str(r.value[UNDER].text, "a b,c\nd%", "a decoded value");
    ok(!r.value[RANKS].text, "one that is not given");
    is_uint(r.payload_length, 0, "no payload");
    request_fini(&r);

    accept(" \t plan  epoch=\t under=x=y  \r\n\r\n\n", 33, &r);
    is_str(r.value[EPOCH].text, "", "blanks, an empty value, CRLF and empty lines after it");
    is_str(r.value[UNDER].text, "x=y", "an equals sign in a value");
    request_fini(&r);

    accept("list sep=nul\na\0b", 16, &r);
    is_int(request_separator(&r.value[0]), '\0', "a separator");
    is_uint(r.payload_length, 3, "a payload");
    is_mem(r.payload, "a\0b", 3, "as it was");
    request_fini(&r);

    accept("list", 4, &r);
    is_int(request_separator(&r.value[0]), '\n', "its default");
    is_uint(r.payload_length, 0, "no line end, no payload");
    request_fini(&r);

    accept("bare\n", 5, &r);
    request_fini(&r);
}

/* A file name such as plan/epoch=1,rank=2 goes through the same parser. */
static void test_pairs(void)
{
    char name[] = "epoch=1,,rank=2,under=a b%2C,reply=u64";
    struct key_value value[KEYS] = {0};
    struct str why = STR_INIT;
    is_int(keys_parse(&(struct key_words){deal_keys, "plan", ','}, name, strlen(name), value, &why), 0,
           "pairs with commas");
    is_str(value[RANK].text, "2", "a value");
    is_str(value[UNDER].text, "a b,", "blanks are no separators there");
    is_uint(value[REPLY].choice, 2, "the third choice");
    str_fini(&why);
}

static void test_usage(void)
{
    CLEANUP_STR struct str text = STR_INIT;
    keys_add_usage(deal_keys, 5, 100, &text);
    is_str(text.data, "epoch=E [ranks=R] [rank=r] [under=DIR] [reply=text|u32|u64]", "a usage");
    str_clear(&text);
    keys_add_usage(deal_keys, 5, 34, &text);
    is_str(text.data, "epoch=E [ranks=R] [rank=r]\n     [under=DIR]\n     [reply=text|u32|u64]", "in short lines");
}

int main(void)
{
    test_refusals();
    test_nul();
    test_long_line();
    test_accepted();
    test_pairs();
    test_usage();
    return done_testing();
}
