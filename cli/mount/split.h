/* Root mounts for another user (owner=USER): one small process stays root, all others become USER for good. */
#ifndef CLI_MOUNT_SPLIT_H
#define CLI_MOUNT_SPLIT_H

#include "cli/mount/steps.h"

/* Starts dealfs-mounter, with all that root's command line says about the two mounts, and makes room for USER in an SSD
 * directory that only root may write to. Nothing of USER's is opened. Does nothing when root mounts for itself, nor for
 * other users; where a courier has started the mounter already (options.mounter), it is taken over. */
int split_begin(struct start *s, struct str *why);
/* From here on this process is USER, and cannot go back. */
int split_become(struct start *s, struct str *why);

/* What needs the rights of USER and comes before a program that must still be root (the courier, until MPI_Init): a
 * child does it. What it finds of source, mountpoint, state directory and lock is in `s` then. */
int split_prepare(struct start *s, int (*prepare)(struct start *, struct str *), struct str *why);

#endif
