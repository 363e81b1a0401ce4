/* Words of the form KEY=VALUE, read by a table of the keys that there are. Usages and helps are made of the same table.
 */
#ifndef FS_BASE_KEYS_H
#define FS_BASE_KEYS_H

#include "fs/base/str.h"

struct key {
    const char *name;
    const char *choices; /* "lf|nul", the first one the default; NULL: any value */
    const char *value;   /* what stands for any value in a usage: "E" */
    const char *help;    /* one line, or NULL */
    bool required;
};

enum { KEYS_MOST = 32 }; /* of one table, which ends with a name of NULL */

struct key_value {
    const char *text; /* NULL: not given. Decoded, NUL-terminated, without NUL bytes in it */
    size_t length;
    unsigned choice; /* its place among the choices; 0 where it is not given */
};

/* Words with `separator` between them (a blank: blanks and tabs), percent-decoded, into `values`, which are zero and in
 * the order of `keys`. `text`, which has a NUL behind it, is changed, and values point into it. `what` takes these
 * keys: for reasons. 0; -EINVAL and why. */
int keys_parse(const struct key *keys, const char *what, char *text, size_t n, char separator, struct key_value *values,
               struct str *why);

/* "epoch=E [reply=text|u32]": broken into lines of `width` columns; of these the first begins in column `indent`, and
 * others are indented by as many. */
void keys_add_usage(const struct key *keys, size_t indent, size_t width, struct str *text);
/* A line each with its help, indented by two. */
void keys_add_help(const struct key *keys, struct str *text);

/* The known word that is nearest to the one given, to be remembered while going through the known ones. */
struct nearest {
    const char *word;
    unsigned distance;
};
void nearest_try(struct nearest *best, const char *given, size_t length, const char *known);
/* That word if a slip of the hand may have made the given one of it, else NULL. */
const char *nearest_meant(const struct nearest *best, size_t length);
/* The beginning of what a user wrote, between backquotes. */
void str_add_backquoted(struct str *text, const char *word, size_t n);

#endif
