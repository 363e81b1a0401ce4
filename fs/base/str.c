/* A growing byte string, and the two encodings of bytes in dealfs's texts. */
#include "fs/base/str.h"

#include "fs/base/array.h"
#include "fs/base/utf8.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_fini(struct str *s)
{
    free(s->data);
    *s = (struct str)STR_INIT;
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
    size_t most = SIZE_MAX / 2 - s->length - 1;
    s->failed = n > most || array_reserve(s->data, s->capacity, s->length + n + 1);
    if (s->failed)
        return NULL;
    s->data[s->length] = '\0';
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

int str_no_memory(struct str *why)
{
    return str_fail(why, -ENOMEM, "out of memory");
}

int str_keep(char **to, char *text)
{
    free(*to);
    *to = text;
    return text ? 0 : -ENOMEM;
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

/* Append plain bytes unchanged, others by the format. */
static void add_coded(struct str *s, const unsigned char *p, size_t n, bool (*is_plain)(unsigned char),
                      const char *format)
{
    str_reserve(s, n);
    while (n > 0) {
        size_t plain = 0;
        while (plain < n && is_plain(p[plain]))
            plain++;
        str_add(s, p, plain);
        if (plain < n)
            str_addf(s, format, p[plain++]);
        p += plain;
        n -= plain;
    }
    str_add(s, "", 0);
}

static bool percent_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-/:+@", c));
}

void str_add_percent(struct str *s, const void *bytes, size_t n)
{
    add_coded(s, bytes, n, percent_plain, "%%%02X");
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

static bool is_printable(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '\\';
}

void str_add_printable(struct str *s, const void *bytes, size_t n)
{
    add_coded(s, bytes, n, is_printable, "\\x%02x");
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= UTF8_ESCAPE && c <= UTF8_ESCAPE + 0xff);
}

void str_add_shown(struct str *s, const char *text, size_t n)
{
    const char *end = text + n;
    while (text < end) {
        const char *from = text;
        uint32_t c = utf8_next(&text, end);
        if (is_control(c) && c != '\n' && c != '\t')
            str_addf(s, "\\u%04x", (unsigned)c);
        else
            str_add(s, from, (size_t)(text - from));
    }
}

void str_add_shell_quoted(struct str *text, const char *word)
{
    str_adds(text, "'");
    for (; *word; word++)
        if (*word == '\'')
            str_adds(text, "'\\''");
        else
            str_add(text, word, 1);
    str_adds(text, "'");
}

bool text_line(const char **rest, size_t *n, char separator, const char **line, size_t *length)
{
    if (*n == 0)
        return false;
    const char *end = memchr(*rest, separator, *n);
    size_t taken = end ? (size_t)(end - *rest) : *n;
    *line = *rest;
    *length = taken;
    if (separator == '\n' && taken > 0 && (*rest)[taken - 1] == '\r')
        (*length)--;
    taken += end != NULL;
    *rest += taken;
    *n -= taken;
    return true;
}

size_t text_lines_most(const char *text, size_t n, char separator)
{
    const char *end = text + n;
    size_t lines = 1;
    for (; text < end && (text = memchr(text, separator, (size_t)(end - text))); text++)
        lines++;
    return lines;
}
