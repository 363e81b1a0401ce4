/* Paths from users: the source and the mountpoint, with checks that make them safe to use. */
#ifndef CLI_BASE_PLACE_H
#define CLI_BASE_PLACE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PLACE_SECONDS = 10 };

/* Replaces `%r` by the node's number, `%h` by the host's name, `%%` by a percent sign; the rest is unchanged.
 * Appends. */
void place_expand(const char *text, unsigned node, struct str *out);
/* Appends a path for which place_expand returns it unchanged; `in_list`: also as the value of an option in a list. */
void place_escape(const char *path, bool in_list, struct str *out);
/* Expanded, and made absolute with the working directory; not resolved. malloc'd; NULL: no memory. */
char *place_absolute(const char *text, unsigned node);
char *place_as_given(const char *text); /* the same, not expanded */

/* The program of that name in $PATH: 0 or -ENOENT. */
int place_in_path(const char *name, char *path, size_t n);
/* A device or FIFO that the user named for output, opened for writing. -ENOENT: a regular file, or it does not exist;
 * then the file must be replaced as a whole, which no other file may be. */
int place_open_special(const char *path);
/* FOLDER/NAME, malloc'd; NULL: no memory. */
char *place_join(const char *folder, const char *name);
/* Without `.`, `..` and empty components, by text only: root mounts on exactly this name. malloc'd; NULL: no memory. */
char *place_plain(const char *path);
/* Writes `WHAT PATH: ` into `why`, to be followed by a reason. */
void place_name(struct str *why, const char *what, const char *path);
/* Writes `WHAT PATH: reason` into `why`, and returns `error`. */
int place_fail(struct str *why, const char *what, const char *path, const char *reason, int error);
/* The same with the meaning of -errno `error` as the reason. 0: writes nothing. */
int place_error(struct str *why, const char *what, const char *path, int error);

/* The source: absolute, resolved, and opened; it must be a directory that this process may read. */
int place_source(const char *given, char **path, int *fd, struct str *why);
/* The mountpoint: absolute, its parents resolved, and itself if it is a symlink. Never accesses what is mounted on it,
 * and returns even if that hangs. It need not exist: -ENOENT only if its parent does not. */
int place_mountpoint(const char *given, char **path, struct str *why);
/* What is at the mountpoint now: it must be a directory. `empty`: it has no entries. Guarded. */
int place_look(const char *mountpoint, bool *empty, struct str *why);
bool place_lies_in(const char *inner, const char *outer); /* or equals it; both resolved */
/* Neither may equal or contain the other. Both resolved. */
int place_apart(const char *source, const char *mountpoint, struct str *why);

const char *place_host(void);

#endif
