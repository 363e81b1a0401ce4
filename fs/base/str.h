/* A growing byte string. It may contain NUL bytes; `data` is always followed by one, and is never NULL after an add.
 * When memory runs out, `failed` is set: check it once, at the end. */
#ifndef FS_BASE_STR_H
#define FS_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
    char *data;
    size_t length, capacity;
    bool failed;
};

#define STR_INIT                                                                                                       \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define CLEANUP_STR __attribute__((cleanup(str_fini)))

void str_fini(struct str *s);               /* frees; the string is then empty and usable again */
void str_clear(struct str *s);              /* length 0; keeps the memory */
char *str_reserve(struct str *s, size_t n); /* room for n more bytes at the end, or NULL */
void str_add(struct str *s, const void *bytes, size_t n);
void str_adds(struct str *s, const char *text);
void str_addf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_addv(struct str *s, const char *format, va_list args);
/* Appends a reason for people, as str_addf, and returns `error`. A macro, so that the compiler sees that value. */
#define str_fail(why, error, ...)                                                                                      \
    ({                                                                                                                 \
        int error_ = (error);                                                                                          \
        str_addf(why, __VA_ARGS__);                                                                                    \
        error_;                                                                                                        \
    })
int str_no_memory(struct str *why); /* writes "no memory" as a user's reason, and returns -ENOMEM */
char *str_steal(struct str *s);     /* the caller frees it; "" if empty, NULL if failed */

int str_keep(char **to, char *text); /* replaces a string, which is freed, by `text`; text NULL: -ENOMEM */

/* Percent-encoding, used by the control protocol and the mount's configuration file. Decoding works in place and
 * returns the new length (if shorter, followed by a NUL), or -EINVAL for a bad escape, and nothing has changed.
 * Encoding leaves A-Za-z0-9 and ._-/:+@ unchanged. */
void str_add_percent(struct str *s, const void *bytes, size_t n);
long percent_decode(char *text, size_t n);

/* A name for people: printable bytes unchanged, others and backslash as \xHH, so that a newline in a file's name cannot
 * forge a line of a log. */
void str_add_printable(struct str *s, const void *bytes, size_t n);
/* Text of another process, for a terminal: UTF-8, newlines and tabs unchanged; other control characters, including C1,
 * and bytes that are not UTF-8 as \uHHHH, which is valid in JSON. */
void str_add_shown(struct str *s, const char *text, size_t n);
void str_add_shell_quoted(struct str *s, const char *word);

/* Take the next line of a text whose lines end with `separator`, and move `*rest` and `*n` past it; the end of the last
 * one may be missing. A carriage return before a newline belongs to the line end. False: there is none left. */
bool text_line(const char **rest, size_t *n, char separator, const char **line, size_t *length);
size_t text_lines_most(const char *text, size_t n, char separator); /* their number, or one more */

#endif
