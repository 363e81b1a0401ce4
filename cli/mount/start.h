/* Starts a mount, for `mount` and `run`:
 *
 *   check ─▶ split ─▶ places ─▶ state ─▶ scan ─▶ tiers ─▶ resize ─▶ mounts ─▶ keeper ─▶ finish
 *
 * If a step fails, all earlier steps are undone. */
#ifndef CLI_MOUNT_START_H
#define CLI_MOUNT_START_H

#include "cli/mount/steps.h"

/* Set the input fields afterwards. */
void start_init(struct start *s);
/* 0: the mount is live. Else -errno, everything is undone, and `why` has a line for people. Signals that end a command
 * (SIGINT, SIGTERM, SIGHUP) are caught meanwhile and stop it. */
int start_mount(struct start *s, struct str *why);
/* Instead of mounting: look at a part of the source's files, for the node of the world that scans (options.part). */
int start_look(struct start *s, struct str *why);
void start_fini(struct start *s); /* also closes `life` */

#endif
