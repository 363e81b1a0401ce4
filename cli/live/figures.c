/* Gets values out of the JSON of mounts, and formats lines with them. */
#include "cli/live/figures.h"

#include "cli/base/progress.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const figures_places[FIGURES_PLACES] = {"ram", "ssd", "peer", "source"};

uint64_t figures_number(const struct str *json, const char *path, ...)
{
    char name[64];
    uint64_t number = 0;
    va_list args;
    va_start(args, path);
    vsnprintf(name, sizeof name, path, args);
    va_end(args);
    return json->length > 0 && json_find_uint(json->data, json->length, name, &number) == 0 ? number : 0;
}

bool figures_is(const struct str *json, const char *path, const char *word)
{
    const char *value;
    size_t length = strlen(word);
    long n = json->length > 0 ? json_find(json->data, json->length, path, &value) : -ENOENT;
    if (n > 0 && *value == '"') {
        value++;
        n -= 2;
    }
    return n == (long)length && memcmp(value, word, length) == 0;
}

struct figures_list figures_list_of(const struct str *json, const char *path)
{
    struct figures_list list = {.rest = json->data, .left = json->length};
    if (path) {
        long n = json->length > 0 ? json_find(json->data, json->length, path, &list.rest) : 0;
        list.left = n > 0 ? (size_t)n : 0;
    }
    return list;
}

bool figures_next(struct figures_list *list, struct str *element)
{
    const char *value;
    long n = list->left > 0 ? json_next(&list->rest, &list->left, &value) : -ENOENT;
    if (n > 0)
        *element = (struct str){.data = (char *)value, .length = (size_t)n};
    return n > 0;
}

static void add_string(struct str *out, const struct str *json, const char *path)
{
    CLEANUP_STR struct str text = STR_INIT;
    if (json->length > 0 && json_find_string(json->data, json->length, path, &text) == 0 && text.length > 0)
        str_add_printable(out, text.data, text.length);
    else
        str_adds(out, "-");
}

static void add_value(struct str *out, const struct str *json, const char *path, const char *kind)
{
    uint64_t number = figures_number(json, "%s", path);
    if (strcmp(kind, "text") == 0)
        add_string(out, json, path);
    else if (strcmp(kind, "count") == 0)
        str_adds(out, count_text(number));
    else if (strcmp(kind, "size") == 0)
        str_adds(out, size_text(number));
    else if (strcmp(kind, "us") == 0)
        str_adds(out, duration_text(number * 1000));
    else
        str_addf(out, "%" PRIu64, number);
}

static void fill_in(struct str *out, const struct str *json, const char *at)
{
    CLEANUP_STR struct str value = STR_INIT;
    while (*at) {
        char path[48], kind[8] = "number", one[64], many[64];
        int width = 0;
        size_t plain = strcspn(at, "{");
        str_add(out, at, plain);
        at += plain;
        if (!*at || sscanf(at, "{%47[^ |}] %7[a-z] %d}", path, kind, &width) < 1)
            break;
        str_clear(&value);
        if (sscanf(at, "{%*[^|}]|%63[^|}]|%63[^}]}", one, many) == 2)
            str_adds(&value, figures_number(json, "%s", path) == 1 ? one : many);
        else
            add_value(&value, json, path, kind);
        str_addf(out, "%*s", width, value.failed ? "?" : value.data);
        at += strcspn(at, "}");
        at += *at == '}';
    }
}

void figures_add(struct str *out, const struct str *json, const char *format, ...)
{
    CLEANUP_STR struct str line = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&line, format, args);
    va_end(args);
    out->failed |= line.failed;
    if (!line.failed)
        fill_in(out, json, line.data);
}

void figures_print(const struct str *json, const char *format, ...)
{
    CLEANUP_STR struct str line = STR_INIT, out = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&line, format, args);
    va_end(args);
    if (!line.failed)
        fill_in(&out, json, line.data);
    if (!out.failed)
        fputs(out.data ? out.data : "", stdout);
}
