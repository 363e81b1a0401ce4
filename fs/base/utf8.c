/* UTF-8 by RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF. */
#include "fs/base/utf8.h"

#include <string.h>

static bool is_tail(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t utf8_length(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    unsigned char first = p[0], second = n > 1 ? p[1] : 0;
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return n >= 2 && is_tail(second) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        bool fits = is_tail(second) && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second >= 0xA0);
        return n >= 3 && fits && is_tail(p[2]) ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        bool fits = is_tail(second) && !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second >= 0x90);
        return n >= 4 && fits && is_tail(p[2]) && is_tail(p[3]) ? 4 : 0;
    }
    return 0;
}

uint32_t utf8_next(const char **p, const char *end)
{
    const unsigned char *at = (const unsigned char *)*p;
    size_t n = utf8_length(at, (size_t)(end - *p));
    *p += n ? n : 1;
    switch (n) {
    case 0:
        return UTF8_ESCAPE + at[0];
    case 1:
        return at[0];
    case 2:
        return (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu);
    case 3:
        return (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    default:
        return (at[0] & 0x07u) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
    }
}

bool utf8_valid(const char *text, size_t n)
{
    const char *end = text + n;
    while (text < end) {
        uint64_t word;
        if (end - text >= (ptrdiff_t)sizeof word && (memcpy(&word, text, sizeof word), !(word & 0x8080808080808080))) {
            text += sizeof word;
            continue;
        }
        size_t length = utf8_length(text, (size_t)(end - text));
        if (length == 0)
            return false;
        text += length;
    }
    return true;
}

int utf8_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const char *a_end = a + a_length, *b_end = b + b_length;
    while (a < a_end && b < b_end) {
        uint32_t x = utf8_next(&a, a_end), y = utf8_next(&b, b_end);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a < a_end) - (b < b_end);
}
