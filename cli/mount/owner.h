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

/* A user by number, for root. Programs that know the number use this: another user may have it as a name. */
int owner_of_uid(uid_t uid, struct owner *owner);
/* What a person has given: a name, else a number; +NUMBER: a number, never a name; NULL: the user of this process. */
int owner_find(const char *given, struct owner *owner, struct str *why);
void owner_fini(struct owner *owner);

#endif
