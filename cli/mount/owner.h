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

#endif
