/* The state of a start, and its steps outside of start.c: see start.h. */
#ifndef CLI_MOUNT_STEPS_H
#define CLI_MOUNT_STEPS_H

#include "cli/mount/mount-options.h"
#include "cli/mount/owner.h"
#include "cli/mount/tiers.h"
#include "fs/attach/attach.h"
#include "fs/attach/config.h"
#include "fs/catalog/catalog.h"

#include <stdio.h>

struct start {
    /* input: */
    const char *source, *mountpoint;
    struct str given; /* the options, as given */
    struct mount_options options;
    bool foreground; /* log to stderr */
    bool attached;   /* the mount ends when the last copy of `life` is closed */
    bool namespaced; /* in our own user namespace: the keeper gets the right to unmount there */
    FILE *to;        /* for messages */
    int slot;        /* which of several nodes that start on this host; -1: the only one */
    /* results: */
    struct mount_config config;
    int life; /* if attached: our end; else -1. POLLERR on it: all processes of the mount have ended */
    pid_t keeper;
    /* intermediate: */
    struct owner owner;
    struct tiers tiers;
    struct catalog *catalog;
    int mounter; /* a socket of dealfs-mounter; -1: this process mounts itself */
    int turn;    /* while it is open, the mounter waits for this process; -1: there is no need */
    int lock, log, state_fd, source_fd, config_fd, copy, resized, life_theirs;
    struct attach_mount data, control;
    off_t log_before; /* earlier length of the log */
    bool state_made, control_made;
    bool resized_given; /* the world has resized its images, and the records are in the state directory */
};

/* --- before the scan (prepare.c) --- */

/* From which the names of its folders are made. */
struct folder_key prepare_key(const struct start *s);
/* Determines the owner of the mount. */
int prepare_owner(struct start *s, struct str *why);
/* Determines the owner, checks that required programs and device exist, and raises limits. */
int prepare_check(struct start *s, struct str *why);
/* Unmounts a dead mount on `config.mountpoint`. A live one: -EBUSY. */
int prepare_clear(struct start *s, struct str *why);
/* Finds source, mountpoint and SSD directory. */
int prepare_names(struct start *s, struct str *why);
/* -EPERM: the mounter would mount on `real`, but root was `given` a name that leads there by a symlink. */
int prepare_way(const struct start *s, const char *what, const char *given, const char *real, struct str *why);
/* The same as prepare_names, and checks that they fit together. */
int prepare_places(struct start *s, struct str *why);
/* Determines the state directory; claims a default one, with `lock`. */
int prepare_state_name(struct start *s, struct str *why);
/* Creates the state directory, its lock, the node's id and the log. */
int prepare_state(struct start *s, struct str *why);

/* Instead of a scan (given-catalog.c): installs `options.catalog`, which the world already has, as the state's catalog,
 * and opens it. With resize= it may be a file `resized`, which contains the catalog and the results. Rejects an invalid
 * catalog, and that of another dataset than the source as this node sees it. */
int given_install(struct start *s, struct str *why);

/* With resize=PIXELS (resize-step.c): makes the resized images into the tiers, and replaces the source's catalog by
 * that of the results. */
int resize_source(struct start *s, struct str *why);

/* --- the two mounts (mounts.c) --- */

int mounts_put_up(struct start *s, struct str *why);
/* Unmount both lazily, if they are ours. */
void mounts_take_away(struct start *s);
/* Returns when the keeper and its server have ended; kills them if necessary. */
void mounts_await_end(struct start *s);

#endif
