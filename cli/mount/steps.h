/* What the steps of a mount work on, and what there is of them beside start.c: see start.h. */
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
    /* given: */
    const char *source, *mountpoint;
    struct mount_options options;
    bool foreground; /* the log goes to stderr */
    bool attached;   /* the mount ends when the last copy of `life` is closed */
    bool namespaced; /* in a user namespace of our own: the keeper gets the right to unmount there */
    FILE *to;        /* what there is to say */
    int slot;        /* which of several nodes that start on this host; -1: the only one */
    /* made: */
    struct mount_config config;
    int life; /* attached: our end; -1. POLLERR on it says that all processes of the mount have ended */
    pid_t keeper;
    /* on the way: */
    struct owner owner;
    struct tiers tiers;
    struct catalog *catalog;
    int mounter; /* a socket of dealfs-mounter; -1: this process mounts by itself */
    int lock, log, state_fd, source_fd, config_fd, copy, resized, life_theirs;
    struct attach_mount data, control;
    off_t log_before; /* how long the log was */
    bool state_made, control_made;
    bool resized_given; /* the world has made its images, and what it knows of them lies in the state directory */
};

/* --- before the scan (prepare.c) --- */

/* Where the names of its folders come from. */
struct folder_key prepare_key(const struct start *s);
/* Whose mount it is. */
int prepare_owner(struct start *s, struct str *why);
/* The owner is found; the programs and the device that it needs are there, and its limits are raised. */
int prepare_check(struct start *s, struct str *why);
/* A dead mount on `config.mountpoint` is taken away. A live one: -EBUSY. */
int prepare_clear(struct start *s, struct str *why);
/* Source, mountpoint and SSD directory are found. */
int prepare_names(struct start *s, struct str *why);
/* -EPERM: the mounter is to mount on `real`, and root was `given` a name that leads there by a symlink. */
int prepare_way(const struct start *s, const char *what, const char *given, const char *real, struct str *why);
/* The same as prepare_names, and they fit together. */
int prepare_places(struct start *s, struct str *why);
/* Where the state directory is, or will be: a default one is claimed, and `lock` holds it. */
int prepare_state_name(struct start *s, struct str *why);
/* The state directory, its lock, the node's id and the log. */
int prepare_state(struct start *s, struct str *why);

/* In place of a scan (given-catalog.c): installs `options.catalog`, which the world has already, as the state's
 * catalog, and opens it; with resize= that may be a file `resized`, which has it, and what was made of it. Refused:
 * what is no catalog, and one of another dataset than the source as this node sees it. */
int given_install(struct start *s, struct str *why);

/* With resize=PIXELS (resize-step.c): makes of the source what the mount shows of it, into the tiers, and puts the
 * catalog of that in the place of the source's. */
int resize_source(struct start *s, struct str *why);

/* --- the two mounts (mounts.c) --- */

int mounts_put_up(struct start *s, struct str *why);
/* Both, lazily, where they are ours. */
void mounts_take_away(struct start *s);
/* Returns when the keeper and its server have ended; by force if they do not by themselves. */
void mounts_await_end(struct start *s);

#endif
