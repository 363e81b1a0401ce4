/* fs/catalog/glob.h */
#include "fs/catalog/glob.h"
#include "tests/lib/tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *glob, *text;
    bool match;
} table[] = {
    {"", "", true},
    {"", "a", false},
    {"a", "", false},
    {"abc", "abc", true},
    {"abc", "abd", false},
    {"*", "", true},
    {"*", "abc", true},
    {"*", "a/b", false},
    {"*.jpg", "x.jpg", true},
    {"*.jpg", ".jpg", true},
    {"*.jpg", "x.jpg.png", false},
    {"*.jpg", "d/x.jpg", false},
    {"*/*.jpg", "d/x.jpg", true},
    {"*/*.jpg", "d/e/x.jpg", false},
    {"**/*.jpg", "d/e/x.jpg", true},
    {"**/*.jpg", "x.jpg", true},
    {"**/x", "dx", false},
    {"**x", "d/e/fx", true},
    {"a/**", "a/b/c", true},
    {"a/**", "a", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/xb", false},
    {"a/**/b/**/c", "a/b/x/b/y/c", true},
    {"a/**/b*/c", "a/b1/x/b2/c", true},
    {"a/**/*b/c*d", "a/x/yb/z/qb/ccd", true},
    {"***", "a/b", true},
    {"**", "", true},
    {"?", "a", true},
    {"?", "/", false},
    {"?", "", false},
    {"?", "\xc3\xa9", true},
    {"??", "\xc3\xa9", false},
    {"?", "\xff", true},
    {"??", "\xff\xfe", true},
    {"a?c", "a/c", false},
    {"[abc]", "b", true},
    {"[abc]", "d", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]", "d", true},
    {"[^a-c]", "b", false},
    {"[!a]", "/", false},
    {"[]]", "]", true},
    {"[]a]", "a", true},
    {"[!]]", "a", true},
    {"[a-]", "-", true},
    {"[\\]]", "]", true},
    {"[a\\-c]", "b", false},
    {"[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true},
    {"[", "[", true},
    {"[a", "[a", true},
    {"[a", "a", false},
    {"x[", "x[", true},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"\\?", "?", true},
    {"\\?", "a", false},
    {"\\[a]", "[a]", true},
    {"\\\\", "\\", true},
    {"a\\", "a\\", true},
    {"\\/", "/", true},
    {"*a*b*c", "xxaxxbxxbxxc", true},
    {"*a*b*c", "xxaxxcxxb", false},
    {"*ab", "aaab", true},
    {"*\n*", "a\nb", true},
};

static void test_table(void)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        ok(glob_match(table[i].glob, table[i].text, strlen(table[i].text)) == table[i].match, "`%s` and `%s`: %s",
           table[i].glob, table[i].text, table[i].match ? "match" : "no match");
    ok(glob_match("*", "abc/d", 3), "only the given number of bytes of the text counts");
    ok(glob_has_slash("a/b") && !glob_has_slash("a"), "whether there is a slash");
}

/* The definition, tried in every way there is: slow and plain. Of letters, slashes, `?`, `*` and `**` only. */
static bool plain_match(const char *glob, const char *begin, const char *text)
{
    if (*glob == '\0')
        return *text == '\0';
    if (strncmp(glob, "**", 2) == 0) {
        bool fresh = glob == begin || glob[-1] == '/';
        const char *rest = glob + strspn(glob, "*");
        if (fresh && *rest == '/') {
            if (plain_match(rest + 1, begin, text))
                return true;
            for (const char *t = text; *t; t++)
                if (*t == '/' && plain_match(rest + 1, begin, t + 1))
                    return true;
            return false;
        }
        for (const char *t = text;; t++) {
            if (plain_match(rest, begin, t))
                return true;
            if (!*t)
                return false;
        }
    }
    if (*glob == '*') {
        for (const char *t = text;; t++) {
            if (plain_match(glob + 1, begin, t))
                return true;
            if (!*t || *t == '/')
                return false;
        }
    }
    return *text && (*glob == '?' ? *text != '/' : *glob == *text) && plain_match(glob + 1, begin, text + 1);
}

static void random_text(char *text, size_t most, const char *letters, unsigned *seed)
{
    size_t n = (size_t)rand_r(seed) % most;
    for (size_t i = 0; i < n; i++)
        text[i] = letters[(size_t)rand_r(seed) % strlen(letters)];
    text[n] = '\0';
}

static void test_random(void)
{
    unsigned seed = 1, matches = 0, wrong = 0;
    for (int i = 0; i < 300000; i++) {
        char glob[12], text[12];
        random_text(glob, sizeof glob, "ab/**?", &seed);
        random_text(text, sizeof text, "aab/", &seed);
        bool got = glob_match(glob, text, strlen(text)), want = plain_match(glob, glob, text);
        matches += want;
        if (got != want && wrong++ < 5)
            diag("`%s` and `%s`: got %d", glob, text, got);
    }
    is_uint(wrong, 0, "300,000 random globs as by trying every way (%u match)", matches);
    ok(matches > 1000, "and enough of them match");
}

/* Nothing that somebody can ask for takes long. */
static void test_time(void)
{
    char glob[2004], text[4001];
    enum { LENGTH = 2000 };
    for (size_t i = 0; i < LENGTH; i += 2)
        memcpy(glob + i, "*a", 2);
    glob[LENGTH] = '\0';
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 'b';
    clock_t begin = clock();
    ok(!glob_match(glob, text, sizeof text), "a thousand stars");
    for (size_t i = 0; i < LENGTH; i += 4)
        memcpy(glob + i, "**?*", 4);
    ok(!glob_match(strcat(glob, "c"), text, sizeof text), "and of both kinds");
    ok(clock() - begin < 5 * CLOCKS_PER_SEC, "take no time");
}

int main(void)
{
    test_table();
    test_random();
    test_time();
    return done_testing();
}
