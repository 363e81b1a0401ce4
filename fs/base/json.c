/* The JSON writer: it appends. */
#include "fs/base/json.h"

#include "fs/base/utf8.h"

#include <math.h>
#include <string.h>

static void add_escaped(struct str *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = strchr(from, c);
    if (at)
        str_addf(out, "\\%c", to[at - from]);
    else
        str_addf(out, "\\u%04x", c);
}

static void add_quoted(struct str *out, const char *value)
{
    const unsigned char *p = (const unsigned char *)value;
    size_t n = strlen(value);
    str_add(out, "\"", 1);
    while (n > 0) {
        size_t plain = 0, length;
        while (plain < n && p[plain] >= 0x20 && p[plain] != '"' && p[plain] != '\\' &&
               (length = utf8_length(p + plain, n - plain)) > 0)
            plain += length;
        str_add(out, p, plain);
        if (plain < n)
            add_escaped(out, p[plain++]);
        p += plain;
        n -= plain;
    }
    str_add(out, "\"", 1);
}

enum { INDENT = 2, GROUP_MOST = 150 };

static void new_line(const struct json *j)
{
    if (j->indent)
        str_addf(j->out, "\n%*s", (int)(j->depth * INDENT), "");
}

static void begin_value(struct json *j, const char *key)
{
    if (j->comma)
        str_add(j->out, ",", 1);
    if (j->depth > 0)
        new_line(j);
    j->comma = true;
    if (key) {
        add_quoted(j->out, key);
        str_adds(j->out, j->indent ? ": " : ":");
    }
}

static void begin_group(struct json *j, const char *key, const char *bracket)
{
    begin_value(j, key);
    str_add(j->out, bracket, 1);
    j->comma = false;
    j->depth++;
    j->innermost = j->out->length;
}

/* A small group without nested groups becomes one line. False: it is not such a group. (Strings contain no line
 * ends.) */
static bool join_lines(struct json *j)
{
    size_t blanks = (size_t)j->depth * INDENT, to = j->innermost, end = j->out->length, lines = 0;
    char *text = j->out->data;
    if (!j->indent || j->innermost == 0 || j->out->failed)
        return false;
    for (size_t at = to; at < end; at++)
        lines += text[at] == '\n';
    if (end - to - lines * blanks > GROUP_MOST)
        return false;
    for (size_t at = to; at < end; at++) {
        bool line_end = text[at] == '\n';
        if (!line_end || at > j->innermost)
            text[to++] = line_end ? ' ' : text[at];
        at += line_end ? blanks : 0;
    }
    text[j->out->length = to] = '\0';
    return true;
}

static void end_group(struct json *j, const char *bracket)
{
    bool joined = join_lines(j);
    j->depth--;
    if (!joined)
        new_line(j);
    str_add(j->out, bracket, 1);
    j->comma = true;
    j->innermost = 0;
}

void json_begin_object(struct json *j, const char *key)
{
    begin_group(j, key, "{");
}

void json_end_object(struct json *j)
{
    end_group(j, "}");
}

void json_begin_array(struct json *j, const char *key)
{
    begin_group(j, key, "[");
}

void json_end_array(struct json *j)
{
    end_group(j, "]");
}

void json_string(struct json *j, const char *key, const char *value)
{
    begin_value(j, key);
    if (value)
        add_quoted(j->out, value);
    else
        str_adds(j->out, "null");
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    str_addf(j->out, "%llu", (unsigned long long)value);
}

void json_uint_list(struct json *j, const struct json_number *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_uint(j, numbers[i].key, numbers[i].value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    str_addf(j->out, "%lld", (long long)value);
}

void json_fixed(struct json *j, const char *key, double value, int decimals)
{
    begin_value(j, key);
    if (!isfinite(value)) {
        str_adds(j->out, "null");
        return;
    }
    size_t from = j->out->length;
    str_addf(j->out, "%.*f", decimals, value);
    for (size_t i = from; i < j->out->length; i++) /* a locale may have produced a comma */
        if (j->out->data[i] == ',')
            j->out->data[i] = '.';
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    str_adds(j->out, value ? "true" : "false");
}
