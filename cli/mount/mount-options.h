/* The options after `-o`, as given. Sizes stay text until the total that percentages refer to is known. */
#ifndef CLI_MOUNT_MOUNT_OPTIONS_H
#define CLI_MOUNT_MOUNT_OPTIONS_H

#include "cli/base/command.h"
#include "fs/base/str.h"
#include "fs/catalog/scanner.h"

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLER_PAD = 1, SAMPLER_DROP };

struct mount_options {
    char *ram;      /* NULL: a default is computed */
    char *ssd;      /* the user's directory; NULL: no SSD tier */
    char *ssd_size; /* NULL: depends on the free space */
    char *state, *control, *metrics_file;
    char *owner;    /* a user's name or number */
    char *cache_id; /* identifies state and shards instead of the source; NULL: the source */
    enum rescan rescan;
    int identity_mtime; /* 1: ignore the ctime */
    int zstd_level;     /* 0: off */
    int verify_once;    /* 1: once */
    int source_threads;
    uint64_t source_rate;  /* bytes per second; 0: unlimited */
    uint64_t peer_timeout; /* nanoseconds */
    uint64_t decoded;
    uint64_t request_memory;
    uint64_t readahead;
    uint64_t feed;    /* bytes; UINT64_MAX: not given */
    int sampler;      /* 1: predict the lists of torch's DistributedSampler, with these parameters: */
    int ranks, batch; /* 0: not given */
    uint64_t seed;
    bool seeded;
    int tail; /* SAMPLER_PAD or SAMPLER_DROP; 0: not given */
    char *under;
    bool exchange;          /* samples will move: leave room for that */
    uint64_t exchange_rate; /* bytes per second; 0: unlimited */
    int resize, quality;    /* images: length of the shorter side in pixels, 0: unchanged; JPEG quality, 1 to 100 */
    bool allow_other, no_exec;
    unsigned nodes, groups; /* of the world; 0: not given */
    bool wait_join;
    char *mounter; /* socket of the dealfs-mounter that is to mount; NULL: this process mounts */
    char *digest;  /* of the expected catalog; NULL: any */
    unsigned node; /* this node's number, for %r */
    /* Not documented: what a courier adds to the command line that mounts on its node. */
    unsigned local; /* nodes of its world on this host; 0: not started by a courier */
    char *catalog;  /* the world's catalog, instead of a scan */
    struct scan_part
        part;       /* only look at this part of the files, and write to `looked` what has changed; count 0: mount */
    int looked;     /* descriptor of what other nodes wrote so; 0: none */
    int courier;    /* descriptor to it, by which nodes resize images together; 0: none */
    int lock;       /* that of `state`, held; 0: not given */
    int mounter_fd; /* to a dealfs-mounter (fs/attach/mounter.h); 0: not given */
};

void options_init(struct mount_options *o); /* the defaults */
/* Parses one list `opt,opt=value,…`; a backslash protects a comma in a value. Later options win. 0, -EINVAL, or
 * -ENOMEM; `why` names the option. */
int options_parse(struct mount_options *o, const char *list, struct str *why);
/* Are the options compatible? Call it when all lists are parsed. 0 or -EINVAL. */
int options_check(const struct mount_options *o, struct str *why);
/* Both, for all lists together; `given` may be empty. */
int options_take(struct mount_options *o, const struct str *given, struct str *why);
/* For subcommands with `-o`: the help of each option, and a message that refuses an unknown `--option`, which may be a
 * mount option in the syntax of other programs. */
void options_add_help(struct str *text);
int options_refuse(const struct command *command, int argc, char **argv);
int options_quality(const struct mount_options *o); /* of resized images */
void options_fini(struct mount_options *o);

#endif
