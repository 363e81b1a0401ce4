/* Bring a mount up: what `mount` and `run` share.
 *
 *   check ─▶ split ─▶ places ─▶ state ─▶ scan ─▶ tiers ─▶ resize ─▶ mounts ─▶ keeper ─▶ finish
 *
 * What a step has made is taken back when a later one fails. */
#ifndef CLI_MOUNT_START_H
#define CLI_MOUNT_START_H

#include "cli/mount/steps.h"

/* Ready to be given what to do. */
void start_init(struct start *s);
/* 0: the mount is live. Else -errno, nothing is left, and `why` has the line for people. Signals that end a command
 * (SIGINT, SIGTERM, SIGHUP) are caught meanwhile and stop it. */
int start_mount(struct start *s, struct str *why);
/* In the place of a mount: looks at a part of the source's files for the node of the world that scans it
 * (options.part). */
int start_look(struct start *s, struct str *why);
void start_fini(struct start *s); /* closes `life` as well */

#endif
