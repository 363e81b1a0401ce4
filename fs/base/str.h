/* A growing byte string. It may hold NUL bytes; `data` is always followed by one, and is never NULL after an add.
 * When memory runs out the string remembers it (`failed`): check once, at the end. */
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

void str_fini(struct str *s);               /* frees; the string is empty and usable again */
void str_clear(struct str *s);              /* length 0, memory kept */
char *str_reserve(struct str *s, size_t n); /* room for n more bytes at the end, or NULL */
void str_add(struct str *s, const void *bytes, size_t n);
void str_adds(struct str *s, const char *text);
void str_addf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_addv(struct str *s, const char *format, va_list args);
int str_no_memory(struct str *why); /* for a reason that a user is told: says so, and returns -ENOMEM */
char *str_steal(struct str *s);     /* the caller frees; "" when empty, NULL when failed */

int str_keep(char **to, char *text); /* `text` takes the place of another one, which is freed; NULL: -ENOMEM */

/* Percent-coding, used by the control protocol and the mount's configuration file. Decoding works in place and
 * returns the new length (where it is shorter, followed by a NUL), or -EINVAL for a bad escape and nothing changed.
 * Encoding leaves A-Za-z0-9 and ._-/:+@ as they are. */
void str_add_percent(struct str *s, const void *bytes, size_t n);
long percent_decode(char *text, size_t n);

/* A name for people: printable bytes as they are, others and backslash as \xHH, so that a newline in a file's name
 * cannot forge a line of a log. */
void str_add_printable(struct str *s, const void *bytes, size_t n);
/* Text of another process, for a terminal: UTF-8, newlines and tabs as they are; other control characters, those of C1
 * among them, and bytes that are no UTF-8 as \uHHHH, which JSON takes. */
void str_add_shown(struct str *s, const char *text, size_t n);
void str_add_shell_quoted(struct str *s, const char *word);

#endif
