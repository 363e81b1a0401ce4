/* Paths as people give them: the source and the mountpoint, with the checks that make them safe to use. */
#ifndef CLI_BASE_PLACE_H
#define CLI_BASE_PLACE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PLACE_SECONDS = 10 };

/* `%r` becomes the node's number, `%h` the host's name, `%%` a percent sign; anything else stays. Appended. */
void place_expand(const char *text, unsigned node, struct str *out);
/* Expanded, and made absolute by the working directory; not resolved. malloc'd, NULL when memory is out. */
char *place_absolute(const char *text, unsigned node);
char *place_as_given(const char *text); /* the same, not expanded */

/* The program that a name stands for in $PATH: 0 or -ENOENT. */
int place_in_path(const char *name, char *path, size_t n);
/* A device or a fifo that the user named for output, opened for writing. -ENOENT: it is a regular file, or does not
 * exist; then it is to be replaced as a whole, as no other file may be. */
int place_open_special(const char *path);
/* FOLDER/NAME, malloc'd; NULL when memory is out. */
char *place_join(const char *folder, const char *name);
/* Without `.`, `..` and empty names, whatever is there: what root mounts on has no other name. The same. */
char *place_plain(const char *path);
/* Says `WHAT PATH: reason` in `why`, and returns `error`. */
int place_fail(struct str *why, const char *what, const char *path, const char *reason, int error);

/* The source: absolute and resolved; it must be a directory that this process may read. */
int place_source(const char *given, char **path, struct str *why);
/* The mountpoint: absolute, its parents resolved, and it too when it is a symlink. Never looks into what is mounted on
 * it, and comes back also when that hangs. Says nothing of whether it is there: -ENOENT only when its parent is not. */
int place_mountpoint(const char *given, char **path, struct str *why);
/* What stands on the mountpoint now: it must be a directory. `empty` says whether it has entries. Guarded. */
int place_look(const char *mountpoint, bool *empty, struct str *why);
bool place_lies_in(const char *inner, const char *outer); /* or is it; both resolved */
/* Neither may be the other or lie in it. Both resolved. */
int place_apart(const char *source, const char *mountpoint, struct str *why);

const char *place_host(void);

#endif
