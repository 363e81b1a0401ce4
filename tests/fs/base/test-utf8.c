/* fs/base/utf8.h */
#include "fs/base/utf8.h"
#include "tests/lib/tap.h"

#include <string.h>

static void test_utf8(void)
{
    static const struct {
        const char *text;
        uint32_t first;
    } table[] = {
        {"a", 'a'},
        {"\x7f", 0x7f},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
        {"\x80", 0xdc80},
        {"\xc0\x80", 0xdcc0},
        {"\xc1\xbf", 0xdcc1},
        {"\xc2", 0xdcc2},
        {"\xc2/", 0xdcc2},
        {"\xe0\x9f\xbf", 0xdce0},
        {"\xe4\xb8", 0xdce4},
        {"\xed\xa0\x80", 0xdced},
        {"\xf0\x8f\xbf\xbf", 0xdcf0},
        {"\xf0\x9f\x98", 0xdcf0},
        {"\xf4\x90\x80\x80", 0xdcf4},
        {"\xf5\x80\x80\x80", 0xdcf5},
        {"\xff", 0xdcff},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *p = table[i].text, *end = p + strlen(p);
        is_uint(utf8_next(&p, end), table[i].first, "character %zu", i);
        bool valid = (table[i].first & ~0xffu) != UTF8_ESCAPE;
        is_int(p - table[i].text, valid ? end - table[i].text : 1, "and its length");
        ok(utf8_valid(table[i].text, strlen(table[i].text)) == valid, "and whether it is UTF-8");
    }
    ok(utf8_valid("plain text of some length, then \xc3\xa9", 34) && !utf8_valid("plain text of some length \xc3", 27),
       "texts longer than a word");
    ok(utf8_compare("a", 1, "ab", 2) < 0 && utf8_compare("b", 1, "ab", 2) > 0 && utf8_compare("a", 1, "a", 1) == 0,
       "order of plain strings");
    ok(utf8_compare("\xff", 1, "\xee\x80\x80", 3) < 0 && utf8_compare("\xff", 1, "\xed\x9f\xbf", 3) > 0,
       "a byte that is no UTF-8 stands between U+D7FF and U+E000");
}

int main(void)
{
    test_utf8();
    return done_testing();
}
