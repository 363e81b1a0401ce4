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
