/* What stands behind `-o`: the options of a mount, as they were given. Sizes stay text until what they are a share of
 * is known. */
#ifndef CLI_MOUNT_MOUNT_OPTIONS_H
#define CLI_MOUNT_MOUNT_OPTIONS_H

#include "fs/base/str.h"
#include "fs/catalog/scanner.h"

#include <stdbool.h>
#include <stdint.h>

struct mount_options {
    char *ram;      /* NULL: a default is worked out */
    char *ssd;      /* the user's directory; NULL: no SSD tier */
    char *ssd_size; /* NULL: what there is room for */
    char *state, *control, *metrics_file;
    char *owner;    /* a user's name or number */
    char *cache_id; /* instead of the source, what state and shards are found by; NULL: the source */
    enum rescan rescan;
    bool identity_mtime; /* the ctime says nothing */
    int zstd_level;      /* 0: off */
    bool verify_once;
    int source_threads;
    uint64_t source_rate;  /* bytes per second; 0: no bound */
    uint64_t peer_timeout; /* nanoseconds */
    uint64_t decoded;
    uint64_t request_memory;
    uint64_t readahead;
    uint64_t feed;    /* bytes; UINT64_MAX: not given */
    bool sampler;     /* torch's: of a training whose lists are foreseen, with: */
    int ranks, batch; /* 0: not given */
    uint64_t seed;
    bool seeded, tail_given, drop;
    char *under;
    bool exchange;          /* samples will move: room is left for it */
    uint64_t exchange_rate; /* bytes per second; 0: no bound */
    int resize, quality;    /* images: their shorter side, in pixels, 0: as they are; JPEG's, 1 to 100 */
    bool allow_other, no_exec;
    unsigned nodes, groups; /* of the world; 0: not given */
    bool wait_join;
    char *mounter; /* socket of the dealfs-mounter that is to mount; NULL: this process mounts */
    char *digest;  /* of the catalog that is expected; NULL: any */
    unsigned node; /* this node's number, for %r */
    /* Hidden: what a courier adds to the command line that makes its node's mount. */
    unsigned local; /* nodes of its world on this host; 0: no courier has asked for this mount */
    char *catalog;  /* the world's, instead of a scan */
    struct scan_part
        part;       /* only look at this part of the files, and write to `looked` what has changed; count 0: mount */
    int looked;     /* descriptor of what other nodes wrote so; 0: none */
    int courier;    /* descriptor to it, by which nodes resize images together; 0: none */
    int lock;       /* that of `state`, held; 0: not given */
    int mounter_fd; /* to a dealfs-mounter (fs/attach/mounter.h); 0: not given */
};

void options_init(struct mount_options *o); /* the defaults */
/* One list `opt,opt=value,…`; a backslash keeps a comma in a value. Later ones win. 0, -EINVAL, or -ENOMEM; `why` names
 * the option. */
int options_parse(struct mount_options *o, const char *list, struct str *why);
/* The option that this misspelt name may stand for, or NULL; `flag`: it takes no value. */
const char *options_meant(const char *name, size_t length, bool *flag);
/* Do they go together? To be asked once all lists are parsed. 0 or -EINVAL. */
int options_check(const struct mount_options *o, struct str *why);
int options_quality(const struct mount_options *o); /* of images that are made smaller */
void options_fini(struct mount_options *o);

#endif
