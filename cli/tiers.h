/* How large the two tiers of a shard are, and where they lie: decided from the options, the machine and the dataset. */
#ifndef CLI_TIERS_H
#define CLI_TIERS_H

#include "cli/options.h"
#include "cli/owner.h"
#include "cli/place.h"

#include <stdint.h>

/* As `bytes`, where the dataset is not known yet. */
#define TIERS_ANY (UINT64_C(1) << 60)

struct tiers_wish {
    const struct options *options;
    const struct owner *owner;
    const struct place_key *key;
    uint64_t files, bytes; /* of the dataset */
    unsigned mounts;       /* of this host, this one counted */
};

struct tiers {
    uint64_t ram_bytes, ssd_bytes; /* capacities; 0: no such tier */
    int ram_fd;                    /* a tmpfs of its own, or -1 */
    char *ram_path, *ssd_path;     /* folders; NULL: none */
    bool ram_made, ssd_made;       /* they were not there before */
    struct str ram_reason, ssd_reason; /* why as large, for people; "" where there is nothing to say */
    struct str warning;            /* lines of what is odd but goes, each with its newline */
};

/* What the whole dataset takes in a tier, with all that is stored beside it. */
uint64_t tiers_need(uint64_t files, uint64_t bytes);

/* Is the user's SSD directory there? */
int tiers_check(const struct options *options, struct str *why);
int tiers_make(const struct tiers_wish *wish, struct tiers *tiers, struct str *why);
void tiers_undo(struct tiers *tiers); /* removes the folders that it made */
void tiers_fini(struct tiers *tiers);

#endif
