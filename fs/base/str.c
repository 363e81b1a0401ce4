/* A growing byte string, and the two codings of bytes that texts of dealfs use. */
#include "fs/base/str.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_fini(struct str *s)
{
    int saved = errno;
    free(s->data);
    *s = (struct str)STR_INIT;
    errno = saved;
}

void str_clear(struct str *s)
{
    s->length = 0;
    if (s->data)
        s->data[0] = '\0';
}

char *str_reserve(struct str *s, size_t n)
{
    if (s->failed)
        return NULL;
    if (n > SIZE_MAX / 2 - s->length - 1) {
        s->failed = true;
        return NULL;
    }
    size_t need = s->length + n + 1;
    if (need > s->capacity) {
        size_t capacity = s->capacity * 2 > need ? s->capacity * 2 : need;
        if (capacity < 32)
            capacity = 32;
        char *data = realloc(s->data, capacity);
        if (!data) {
            s->failed = true;
            return NULL;
        }
        s->data = data;
        s->capacity = capacity;
        s->data[s->length] = '\0';
    }
    return s->data + s->length;
}

void str_add(struct str *s, const void *bytes, size_t n)
{
    char *end = str_reserve(s, n);
    if (!end)
        return;
    if (n > 0)
        memcpy(end, bytes, n);
    end[n] = '\0';
    s->length += n;
}

void str_adds(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_addv(struct str *s, const char *format, va_list args)
{
    enum { FIRST_TRY = 128 };
    char *end = str_reserve(s, FIRST_TRY);
    if (!end)
        return;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(end, FIRST_TRY + 1, format, args);
    if (n > FIRST_TRY) {
        end = str_reserve(s, (size_t)n);
        if (end)
            vsnprintf(end, (size_t)n + 1, format, again);
    }
    va_end(again);
    if (n < 0)
        s->failed = true;
    if (s->failed)
        s->data[s->length] = '\0';
    else
        s->length += (size_t)n;
}

void str_addf(struct str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    str_addv(s, format, args);
    va_end(args);
}

char *str_steal(struct str *s)
{
    str_add(s, "", 0);
    char *data = s->failed ? NULL : s->data;
    if (data)
        s->data = NULL;
    str_fini(s);
    return data;
}

static bool percent_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-/:+@", c));
}

void str_add_percent(struct str *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    str_reserve(s, n);
    while (n > 0) {
        size_t plain = 0;
        while (plain < n && percent_plain(p[plain]))
            plain++;
        str_add(s, p, plain);
        if (plain < n)
            str_addf(s, "%%%02X", p[plain++]);
        p += plain;
        n -= plain;
    }
    str_add(s, "", 0);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

long percent_decode(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '%')
            continue;
        if (n - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
            return -EINVAL;
        i += 2;
    }
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            c = (char)(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
            i += 2;
        }
        text[length++] = c;
    }
    if (length < n)
        text[length] = '\0';
    return (long)length;
}

void str_add_printable(struct str *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    str_reserve(s, n);
    while (n > 0) {
        size_t plain = 0;
        while (plain < n && p[plain] >= 0x20 && p[plain] < 0x7f && p[plain] != '\\')
            plain++;
        str_add(s, p, plain);
        if (plain < n)
            str_addf(s, "\\x%02x", p[plain++]);
        p += plain;
        n -= plain;
    }
    str_add(s, "", 0);
}

size_t utf8_length(const void *bytes, size_t n)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *p = bytes;

    for (size_t extra = 0; extra < 4; extra++) {
        if ((p[0] & forms[extra].mask) != forms[extra].lead)
            continue;
        if (extra >= n)
            return 0;
        uint32_t code = p[0] & (unsigned char)~forms[extra].mask;
        for (size_t i = 1; i <= extra; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (p[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return code >= forms[extra].least && code <= 0x10ffff && !surrogate ? extra + 1 : 0;
    }
    return 0;
}
