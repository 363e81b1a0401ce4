/* Folders of our own: states and shards. How they are named, made, claimed, and found to be ours. */
#ifndef CLI_MOUNT_FOLDER_H
#define CLI_MOUNT_FOLDER_H

#include "fs/base/hash.h"
#include "fs/base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* `dealfs-USER-HOST-HASH`, where the hash is of user, host and source, or the name in its place; and `dealfs-HASH`.
 * Appended. */
struct folder_key {
    const char *user, *host, *source, *cache_id; /* NULL: by the source */
};
void folder_add_name(struct str *out, const struct folder_key *key);
void folder_add_short_name(struct str *out, const struct folder_key *key);
/* The directory that state folders are made in by default: the first of $SLURM_TMPDIR, $TMPDIR, /var/tmp that is
 * one. */
const char *folder_state_parent(void);

enum { FOLDER_CLAIMS = 256 };
struct folder_wish {
    const char *what; /* names it in `why` */
    const char *mark; /* a file that each of ours has; NULL: none */
    uid_t uid;        /* whose it is to be: root makes it over to them */
    gid_t gid;
    /* of a claim: */
    const char *prefix;
    const char *lock; /* a file in the folder that is locked; NULL: the folder */
    int number;       /* -1: any */
    bool own;
};

/* Makes a folder (its parents too) with mode 0700 if it is not there; `made` says whether it was. Refused: a symlink,
 * no directory, another's, one on a network file system, and, where there is a mark, one that has only other things in
 * it. */
int folder_make(const struct folder_wish *wish, const char *path, bool *made, struct str *why);

/* Several mounts of one source each have a folder of their own, PREFIX.0, PREFIX.1, …: the first of these that goes:
 *   PREFIX.number, where it is there, or `own` says that it is ours to make;
 *   the first that is there, and that nobody has open: it may be warm;
 *   the first that is not there;
 *   where all FOLDER_CLAIMS are taken, others' among them: one with a greater number, found in the directory, or made
 *   with a random one.
 * Others' folders are passed over. What was claimed is locked until the last copy of `lock` is closed. */
struct folder_claim {
    char *path; /* malloc'd */
    int lock;
    bool made;
};
int folder_claim(const struct folder_wish *wish, struct folder_claim *claim, struct str *why);
void folder_discard(const char *path, const char *lock); /* remove one, unless somebody has it now */
int folder_number(const char *path);                     /* PREFIX.number's, or -1 */
int folder_open_lock(int folder, const char *lock);      /* the descriptor to lock, or -errno; never waits */

DIR *folder_list(int folder); /* NULL: errno */

/* The node's id, kept in STATE/id: made once, from the kernel's random numbers. */
int folder_id(const char *state, char text[DIGEST_TEXT], struct str *why);

#endif
