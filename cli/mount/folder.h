/* Our folders, for states and shards: how they are named, created, claimed, and recognised. */
#ifndef CLI_MOUNT_FOLDER_H
#define CLI_MOUNT_FOLDER_H

#include "fs/base/hash.h"
#include "fs/base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* Appends `dealfs-USER-HOST-HASH`, where HASH is computed from user, host and source, or is `cache_id`; and
 * `dealfs-HASH`. */
struct folder_key {
    const char *user, *host, *source, *cache_id; /* cache_id NULL: use the source */
};
void folder_add_name(struct str *out, const struct folder_key *key);
void folder_add_short_name(struct str *out, const struct folder_key *key);
/* The default parent of state folders: the first directory of $SLURM_TMPDIR, $TMPDIR, /var/tmp. */
const char *folder_state_parent(void);

enum { FOLDER_CLAIMS = 256 };
struct folder_wish {
    const char *what; /* its name in `why` */
    const char *mark; /* a file that each of our folders has; NULL: none */
    uid_t uid;        /* its owner: root gives it to this user */
    gid_t gid;
    /* for a claim: */
    const char *prefix;
    const char *lock; /* a file in the folder that is locked; NULL: the folder itself */
    int number;       /* -1: any */
    bool own;
};

/* Creates a folder (and its parents) with mode 0700 unless it exists; `made`: it was created. Errors: a symlink, not a
 * directory, another user's, on a network filesystem; if there is a mark: it contains only other things. */
int folder_make(const struct folder_wish *wish, const char *path, bool *made, struct str *why);

/* Claims one of the folders PREFIX.0, PREFIX.1, …, which mounts of one source share. The first that is possible:
 *
 *   1. PREFIX.number, if it exists, or `own` says that we may create it
 *   2. the first existing one that no mount uses: it may be warm
 *   3. the first that does not exist
 *   4. if all FOLDER_CLAIMS are taken, also by other users: one with a higher number that is in the directory, or a new
 *      one with a random number
 *
 * Other users' folders are skipped. A claimed folder is locked until the last copy of `lock` is closed. */
struct folder_claim {
    char *path; /* malloc'd */
    int lock;
    bool made;
};
int folder_claim(const struct folder_wish *wish, struct folder_claim *claim, struct str *why);
void folder_discard(const char *path, const char *lock); /* remove one, unless it is in use */
int folder_number(const char *path);                     /* the number in PREFIX.number, or -1 */
int folder_open_lock(int folder, const char *lock);      /* the descriptor to lock, or -errno; never waits */

DIR *folder_list(int folder); /* NULL: errno */

/* The node's id, stored in STATE/id: created once, from the kernel's random numbers. */
int folder_id(const char *state, char text[DIGEST_TEXT], struct str *why);

#endif
