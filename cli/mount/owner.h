/* Whom a mount belongs to: the user who mounts, or the one that root names by owner=USER. */
#ifndef CLI_MOUNT_OWNER_H
#define CLI_MOUNT_OWNER_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

struct owner {
    uid_t uid;
    gid_t gid;
    char *name;   /* a number where the user has no name */
    bool another; /* not the user of this process, which is then root */
};

/* `given`: NULL for the user of this process, else a name or a number. */
int owner_find(const char *given, struct owner *owner, struct str *why);
void owner_fini(struct owner *owner);

/* Between the two, files are opened and made with the owner's rights. Nothing happens where that is the process's user.
 * For all threads. */
int owner_assume(const struct owner *owner, struct str *why);
/* Finds the owner of what a user has made, and assumes it: root any user, others are themselves. */
int owner_become(uid_t uid, struct owner *owner, struct str *why);
void owner_leave(const struct owner *owner);

#endif
