/* A sample list as text. Lines differ in length, so the offset of every 256th line is marked, and a read starts at the
 * mark before it. In a name, newline, carriage return and backslash are written \n, \r and \\; in a record list, tab,
 * newline, carriage return and % are written %09, %0A, %0D and %25. */
#include "fs/catalog/catalog-inside.h"
#include "fs/catalog/samples-inside.h"

#include "fs/base/array.h"
#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char escape_of(char c)
{
    return c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\\' ? '\\' : '\0';
}

void samples_text_escape(const char *path, size_t n, struct str *out)
{
    for (; n > 0; path++, n--) {
        char escape = escape_of(*path);
        str_add(out, escape ? (char[]){'\\', escape} : path, escape ? 2 : 1);
    }
}

size_t samples_text_unescape(const char *line, size_t n, char *path)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        char next = line[i] == '\\' && i + 1 < n ? line[i + 1] : '\0';
        bool escape = next == 'n' || next == 'r' || next == '\\';
        path[length++] = !escape ? line[i] : next == 'n' ? '\n' : next == 'r' ? '\r' : '\\';
        i += escape;
    }
    return length;
}

static bool needs_percent(char c)
{
    return c == '\t' || c == '\n' || c == '\r' || c == '%';
}

static bool needs_escapes(const struct samples *s)
{
    const struct catalog *c = s->catalog;
    const char *odd = s->content.record ? "\t\n\r%" : "\n\r\\";
    bool needs = false;
    for (; *odd; odd++)
        needs |= memchr(c->names, *odd, c->name_bytes) != NULL;
    return needs;
}

/* --- lengths --- */

static size_t text_length(const char *text, size_t n, const struct samples_text *t)
{
    size_t length = n;
    for (size_t i = 0; t->escapes && i < n; i++)
        length += t->percent ? 2 * (size_t)needs_percent(text[i]) : escape_of(text[i]) != '\0';
    return length;
}

/* The path of the last directory; neighbours in a list usually share it. */
struct directory_memory {
    uint32_t directory; /* 0: none */
    size_t length;      /* including the slash */
};

static size_t directory_length(const struct catalog *c, uint32_t directory, const struct samples_text *t,
                               struct directory_memory *m)
{
    if (m->directory == directory)
        return m->length;
    size_t length = 0;
    for (uint32_t at = directory; at != CATALOG_ROOT; at = catalog_dir(c, at)->parent) {
        uint64_t name = catalog_dir(c, at)->name;
        length += text_length(catalog_string(c, name), name_length(name), t) + 1;
    }
    m->directory = directory;
    m->length = length;
    return length;
}

/* Maximum length of the fields after the path in a record's line, with a NUL. */
enum { FIELDS_MOST = 64 };
static size_t put_fields(const struct record *r, char fields[FIELDS_MOST])
{
    int n = snprintf(fields, FIELDS_MOST, "\t%" PRIu64 "\t%" PRIu32 "%s", record_offset(r), r->length,
                     r->place & RECORD_NEWLINE ? "+" : "");
    if (r->label != RECORD_NO_LABEL)
        n += snprintf(fields + n, FIELDS_MOST - (size_t)n, "\t%" PRIu32, r->label);
    return (size_t)n;
}

static size_t line_length(const struct samples *s, uint32_t index, struct directory_memory *m)
{
    const struct catalog *c = s->catalog;
    const struct format_file *f = &c->file[samples_file(s, index)];
    char fields[FIELDS_MOST];
    size_t length = s->content.record ? put_fields(&s->content.record[index], fields) : 0;
    return directory_length(c, f->parent, &s->text, m) +
           text_length(catalog_string(c, f->name), name_length(f->name), &s->text) + length + 1;
}

/* Makes the marks on first use. 0 or -ENOMEM. */
static int make_marks(struct samples *s)
{
    struct samples_text *t = &s->text;
    t->mark = malloc((s->content.count / MARK_EVERY + (size_t)1) * sizeof *t->mark);
    if (!t->mark)
        return -ENOMEM;
    struct directory_memory memory = {0};
    t->escapes = needs_escapes(s);
    t->percent = s->content.record;
    for (uint32_t i = 0; i < s->content.count; i++) {
        if (i % MARK_EVERY == 0)
            t->mark[i / MARK_EVERY] = t->length;
        t->length += line_length(s, i, &memory);
    }
    t->made = true;
    return 0;
}

static int text_ready(struct samples *s)
{
    LOCK_SCOPE(&s->text.lock);
    return s->text.made ? 0 : make_marks(s);
}

uint64_t samples_text_length(struct samples *s)
{
    return text_ready(s) ? 0 : s->text.length;
}

/* --- lines --- */

/* Written from end to start, in the order of the way up the tree. */
static char *put_back(char *end, const char *text, size_t n, const struct samples_text *t)
{
    static const char digit[] = "0123456789ABCDEF";
    if (!t->escapes) {
        end -= n;
        memcpy(end, text, n);
        return end;
    }
    while (n-- > 0) {
        if (t->percent) {
            bool odd = needs_percent(text[n]);
            *--end = odd ? digit[text[n] & 15] : text[n];
            if (odd)
                *--end = digit[text[n] >> 4 & 15];
            if (odd)
                *--end = '%';
            continue;
        }
        char escape = escape_of(text[n]);
        *--end = escape ? escape : text[n];
        if (escape)
            *--end = '\\';
    }
    return end;
}

static void put_line(const struct samples *s, uint32_t index, char *end)
{
    const struct catalog *c = s->catalog;
    const struct format_file *f = &c->file[samples_file(s, index)];
    *--end = '\n';
    if (s->content.record) {
        char fields[FIELDS_MOST];
        size_t n = put_fields(&s->content.record[index], fields);
        end -= n;
        memcpy(end, fields, n);
    }
    end = put_back(end, catalog_string(c, f->name), name_length(f->name), &s->text);
    for (uint32_t at = f->parent; at != CATALOG_ROOT; at = catalog_dir(c, at)->parent) {
        uint64_t name = catalog_dir(c, at)->name;
        *--end = '/';
        end = put_back(end, catalog_string(c, name), name_length(name), &s->text);
    }
}

/* The last mark at or before the offset. */
static uint32_t mark_before(const struct samples *s, uint64_t offset)
{
    return (uint32_t)bisect(i, (s->content.count - 1) / MARK_EVERY, s->text.mark[i + 1] <= offset);
}

int samples_text_read(struct samples *s, uint64_t offset, size_t n, struct str *out)
{
    int error = text_ready(s);
    if (error || offset >= s->text.length)
        return error;
    n = n < s->text.length - offset ? n : (size_t)(s->text.length - offset);
    size_t begin = out->length;
    struct directory_memory memory = {0};
    uint32_t mark = mark_before(s, offset);
    uint64_t at = s->text.mark[mark];
    uint64_t cut = 0; /* part of the first line that is before the offset */
    for (uint32_t i = mark * MARK_EVERY; i < s->content.count && at < offset + n; i++) {
        size_t length = line_length(s, i, &memory);
        at += length;
        if (at <= offset)
            continue;
        if (out->length == begin)
            cut = offset - (at - length);
        char *room = str_reserve(out, length);
        if (!room)
            return -ENOMEM;
        put_line(s, i, room + length);
        out->length += length;
    }
    memmove(out->data + begin, out->data + begin + cut, n);
    out->length = begin + n;
    out->data[out->length] = '\0';
    return 0;
}
