/* JSON: a writer that places commas and line ends itself, and a reader of single values from JSON that dealfs wrote.
 *
 * We have our own reader because names are bytes: those that are not UTF-8 are returned unchanged, while a library
 * would reject the text or return other names. */
#ifndef FS_BASE_JSON_H
#define FS_BASE_JSON_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
    struct str *out;
    bool comma;  /* the next value of this object or array needs a comma */
    bool indent; /* for people: one line per value, or per small group without nested groups; else no blanks at all */
    unsigned depth;
    size_t innermost; /* offset in `out` of the innermost open group, until it contains a group; else 0 */
};

/* `key` is NULL inside an array and for the outermost value. Bytes that are not UTF-8 are written as \u00HH. */
void json_begin_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_begin_array(struct json *j, const char *key);
void json_end_array(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL value: null */
void json_uint(struct json *j, const char *key, uint64_t value);
/* Several: json_uints(j, {"files", files}, {"bytes", bytes}). */
#define json_uints(j, ...)                                                                                             \
    json_uint_list(j, (const struct json_number[]){__VA_ARGS__},                                                       \
                   sizeof((const struct json_number[]){__VA_ARGS__}) / sizeof(struct json_number))
struct json_number {
    const char *key;
    uint64_t value;
};
void json_uint_list(struct json *j, const struct json_number *numbers, size_t n);
void json_int(struct json *j, const char *key, int64_t value);
void json_fixed(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);

/* The text of the value at a path such as "catalog.files" or "nodes.0.host": a number, string (with quotes), literal,
 * object or array. Returns its length and points `value` at it; or -ENOENT, -EBADMSG. */
long json_find(const char *text, size_t n, const char *path, const char **value);
/* -EINVAL: the value has another type; -ERANGE. In a string, \u0080…\u00ff become the original bytes. */
int json_find_uint(const char *text, size_t n, const char *path, uint64_t *value);
int json_find_string(const char *text, size_t n, const char *path, struct str *value); /* unescaped, appended */

/* Iterates over an array: `rest` is the result of json_find, and is moved past each element. Returns the length of the
 * next element; -ENOENT: after the last one; -EBADMSG. */
long json_next(const char **rest, size_t *n, const char **value);

#endif
