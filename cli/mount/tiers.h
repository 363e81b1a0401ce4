/* How large the two tiers of a shard are, and where they lie: decided from the options, the machine and the dataset. */
#ifndef CLI_MOUNT_TIERS_H
#define CLI_MOUNT_TIERS_H

#include "cli/mount/folder.h"
#include "cli/mount/mount-options.h"
#include "cli/mount/owner.h"

#include <stdint.h>

/* As `bytes`, where the dataset is not known yet. */
#define TIERS_ANY (UINT64_C(1) << 60)

struct tiers_wish {
    const struct mount_options *options;
    const struct owner *owner;
    int mounter; /* see struct start */
    const struct folder_key *key;
    int number; /* which of the folders of this source it would have: see folder_claim */
    bool own;
    uint64_t files, bytes; /* of the dataset */
    unsigned beside;       /* mounts that come up together on this host: they may have no keeper yet */
};

struct tiers {
    uint64_t ram_bytes, ssd_bytes;     /* capacities; 0: no such tier */
    int ram_fd;                        /* a tmpfs of its own, or the lock of its folder; or -1 */
    int ssd_fd;                        /* the lock of its folder, or -1 */
    char *ram_path, *ssd_path;         /* folders; NULL: none */
    bool ram_made, ssd_made;           /* they were not there before */
    struct str ram_reason, ssd_reason; /* why as large, for people; "" where there is nothing to say */
    unsigned fits;                     /* about how many percent of the dataset they hold; 100 where it is not known */
    struct str warning;                /* lines of what is odd but goes, each with its newline */
};

/* Is the user's SSD directory there? */
int tiers_check(const struct mount_options *options, struct str *why);
/* What it made before it failed is for tiers_undo. */
/* The most that a tmpfs for the RAM tier may have; 0: there is to be none. */
uint64_t tiers_tmpfs_most(const struct mount_options *options);
int tiers_make(const struct tiers_wish *wish, struct tiers *tiers, struct str *why);
void tiers_let_go(struct tiers *tiers); /* closes the descriptors */
void tiers_undo(struct tiers *tiers);   /* the same, and removes the folders that it made */
void tiers_fini(struct tiers *tiers);

#endif
