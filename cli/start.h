/* Bring a mount up: what `mount` and `run` share.
 *
 *   check ─▶ places ─▶ state ─▶ scan ─▶ tiers ─▶ mounts ─▶ keeper ─▶ finish
 *
 * What a step has made is taken back when a later one fails. */
#ifndef CLI_START_H
#define CLI_START_H

#include "cli/options.h"
#include "cli/owner.h"
#include "cli/tiers.h"
#include "fs/catalog/catalog.h"
#include "fs/mount/config.h"

#include <stdio.h>

struct start {
    /* given: */
    const char *source, *mountpoint;
    struct options options;
    bool foreground; /* the log goes to stderr */
    bool attached;   /* the mount ends when the last copy of `life` is closed */
    bool namespaced; /* in a user namespace of our own: the keeper gets the right to unmount there */
    FILE *to;        /* what there is to say */
    /* made: */
    struct mount_config config;
    int life; /* attached: our end; -1. POLLERR on it says that all processes of the mount have ended */
    pid_t keeper;
    /* on the way: */
    struct owner owner;
    struct tiers tiers;
    struct catalog *catalog;
    int lock, log, source_fd, data, control, life_theirs;
    off_t log_before; /* how long the log was */
    bool state_made, control_made;
};

/* Ready to be given what to do. */
void start_init(struct start *s);
/* 0: the mount is live. Else -errno, nothing is left, and `why` has the line for people. Signals that end a command
 * (SIGINT, SIGTERM, SIGHUP) are caught meanwhile and stop it. */
int start_mount(struct start *s, struct str *why);
void start_fini(struct start *s); /* closes `life` as well */

/* For the steps: where its folders' names come from; and a member of `config` is `value` now (NULL: -ENOMEM). */
struct place_key start_key(const struct start *s);
int start_keep(char **to, char *value);

/* Which of those signals has come since start_mount, or 0. They stay caught. */
int start_signal(void);

#endif
