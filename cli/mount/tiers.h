/* Decides size and place of a shard's two tiers, from the options, the machine and the dataset. */
#ifndef CLI_MOUNT_TIERS_H
#define CLI_MOUNT_TIERS_H

#include "cli/mount/folder.h"
#include "cli/mount/mount-options.h"
#include "cli/mount/owner.h"

#include <stdint.h>

/* As `bytes`, if the dataset is not known yet. */
#define TIERS_ANY (UINT64_C(1) << 60)

struct tiers_wish {
    const struct mount_options *options;
    const struct owner *owner;
    int mounter; /* see struct start */
    const struct folder_key *key;
    int number; /* the preferred folder of this source: see folder_claim */
    bool own;
    uint64_t files, bytes; /* of the dataset */
    unsigned beside;       /* mounts that start together on this host: they may have no keeper yet */
};

struct tier_made {
    uint64_t bytes;             /* capacity; 0: no such tier */
    struct folder_claim folder; /* path NULL: none. `lock` may also be the root of a tmpfs; or -1 */
    struct str reason;          /* explains the size, for people; "": no explanation needed */
};

struct tiers {
    struct tier_made ram, ssd;
    unsigned fits;      /* percentage of the dataset that fits; 100 if unknown */
    struct str warning; /* lines of warnings, each with a newline */
};

/* Does the user's SSD directory exist? */
int tiers_check(const struct mount_options *options, struct str *why);
/* After a failure, call tiers_undo for what was made. */
/* Maximum size of a tmpfs for the RAM tier; 0: none. */
uint64_t tiers_tmpfs_most(const struct mount_options *options);
int tiers_make(const struct tiers_wish *wish, struct tiers *tiers, struct str *why);
void tiers_let_go(struct tiers *tiers); /* closes the descriptors */
void tiers_undo(struct tiers *tiers);   /* the same, and removes folders that it created */
void tiers_fini(struct tiers *tiers);

#endif
