/* Where things are: the source, the mountpoint, and the folders of our own, with the checks that make them safe to use. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "fs/base/hash.h"
#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PLACE_SECONDS = 10 };

/* `%r` becomes the node's number, `%h` the host's name, `%%` a percent sign; anything else stays. Appended. */
void place_expand(const char *text, unsigned node, struct str *out);
/* Expanded, and made absolute by the working directory; not resolved. malloc'd, NULL when memory is out. */
char *place_absolute(const char *text, unsigned node);
char *place_as_given(const char *text); /* the same, not expanded */

/* FOLDER/NAME, malloc'd; NULL when memory is out. */
char *place_join(const char *folder, const char *name);
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

/* `dealfs-USER-HOST-HASH`, where the hash is of user, host, source and mountpoint; and `dealfs-HASH`. Appended. */
struct place_key {
    const char *user, *host, *source, *mountpoint;
};
void place_add_name(struct str *out, const struct place_key *key);
void place_add_short_name(struct str *out, const struct place_key *key);
/* The directory that state folders are made in by default: the first of $SLURM_TMPDIR, $TMPDIR, /var/tmp that is one. */
const char *place_state_parent(void);
const char *place_host(void);

/* A folder of ours: made (parents too) with mode 0700 if it is not there. Refused: a symlink, no directory, another's,
 * one on a network file system, and, where `mark` names a file that each of ours has, one that has other things in it.
 * `made` says whether it was made. Root makes it over to uid and gid. `what` names it in `why`. */
int place_folder(const char *what, const char *path, const char *mark, uid_t uid, gid_t gid, bool *made,
                 struct str *why);

/* The node's id, kept in STATE/id: made once, from the kernel's random numbers. */
int place_id(const char *state, char text[DIGEST_TEXT], struct str *why);

#endif
