/* The helper executes `dealfs mount` for the courier. It is forked before MPI_Init, so that the mount's processes
 * inherit nothing from MPI and the launcher: no descriptors, no threads' memory, no CPU binding, no session that ends
 * with the job.
 *
 * It passes on the command's stderr, each line prefixed with `name`. The last line of a failed command becomes `why`
 * instead. */
#ifndef MPI_HELPER_H
#define MPI_HELPER_H

#include "fs/base/str.h"
#include "mpi/arguments.h"

#include <stdint.h>
#include <sys/types.h>

struct courier_helper {
    pid_t pid;
    int socket; /* -1: there is no helper */
    char **command;
    bool locks, has_mounter; /* it has the lock; it has a socket to dealfs-mounter */
    char name[160];          /* this node's name for messages; "": there is only one node */
    bool mounted;            /* by the helper, and not undone */
    bool begun;              /* a mount was begun and has not ended */
};

/* 0 or -errno. The mount needs the lock and the mounter's socket: from here on only the helper has them. The helper
 * becomes the user that the arguments name. */
int helper_start(struct courier_helper *helper, const struct arguments *arguments);
/* These functions wait. They return 0; or -EIO and why. */
/* `catalog`: the mount's catalog; -1: it scans. `looked`: what other nodes have already looked at (scanner.h,
 * scan_portion); -1: nothing. At least one must be -1. The caller keeps both. */
int helper_mount(struct courier_helper *helper, int catalog, int looked, struct str *why);
/* The same in two steps, for a mount with resize=: the command gets `courier`, the other end of a socket to us
 * (fs/wire/resizing.h), and ends when the mount is up. In between, the helper accepts no other request. */
int helper_begin_mount(struct courier_helper *helper, int catalog, int looked, int courier, struct str *why);
int helper_end_mount(struct courier_helper *helper, struct str *why);
bool helper_has_ended(const struct courier_helper *helper); /* has the command ended? Also true if none was begun */
/* Without mounting: look at this node's part of the files, and write the result to `looked`. */
int helper_look(struct courier_helper *helper, uint32_t part, uint32_t parts, int looked, struct str *why);
int helper_scan(struct courier_helper *helper, const char *path, struct str *why);
/* Unmount what it has mounted, if anything. */
void helper_undo(struct courier_helper *helper, const char *mountpoint);
void helper_end(struct courier_helper *helper);

#endif
