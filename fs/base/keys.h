/* Parses words KEY=VALUE, by a table of keys. Usages and help texts are made from the same table. */
#ifndef FS_BASE_KEYS_H
#define FS_BASE_KEYS_H

#include "fs/base/str.h"

struct key {
    const char *name;
    const char *choices; /* "lf|nul", the first one is the default; NULL: any value */
    const char *value;   /* placeholder for a value in a usage: "E" */
    const char *help;    /* one line, or NULL */
    bool required;
};

enum { KEYS_MOST = 40 }; /* maximum per table, which ends with name NULL */

struct key_value {
    const char *text; /* NULL: not given. Decoded, NUL-terminated, without other NUL bytes */
    size_t length;
    unsigned choice; /* position among the choices; 0 if not given */
};

struct key_words {
    const struct key *keys;
    const char *what; /* their name in messages */
    char separator;   /* a blank: blanks and tabs */
};
/* Parses words, percent-decoded, into `values`, which must be zero and in the order of the keys. `text`, which must be
 * followed by a NUL, is changed, and values point into it. 0; -EINVAL and why. */
int keys_parse(const struct key_words *words, char *text, size_t n, struct key_value *values, struct str *why);

/* Appends "epoch=E [reply=text|u32]", broken into lines of `width` columns; the first one begins in column `indent`,
 * the others are indented by as much. */
void keys_add_usage(const struct key *keys, size_t indent, size_t width, struct str *text);
/* Appends one line per key, indented by two, with a tab before its help. */
void keys_add_help(const struct key *keys, struct str *text);

/* The known word that is nearest to a given one; updated while iterating over the known ones. */
struct nearest {
    const char *word;
    unsigned distance;
};
void nearest_try(struct nearest *best, const char *given, size_t length, const char *known);
/* That word if the given one may be a typo of it, else NULL. */
const char *nearest_meant(const struct nearest *best, size_t length);
/* Appends the start of what a user wrote, in backquotes. */
void str_add_backquoted(struct str *text, const char *word, size_t n);

#endif
