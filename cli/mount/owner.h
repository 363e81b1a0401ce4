/* The owner of a mount: the user who mounts, or the one that root names by owner=USER. */
#ifndef CLI_MOUNT_OWNER_H
#define CLI_MOUNT_OWNER_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

struct owner {
    uid_t uid;
    gid_t gid;
    char *name;   /* a number if the user has no name */
    bool another; /* not the user of this process, which is then root */
};

/* `given`: a name or a number; NULL: the user of this process. */
int owner_find(const char *given, struct owner *owner, struct str *why);
void owner_fini(struct owner *owner);

#endif
