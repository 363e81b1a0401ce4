/* The helper that executes `dealfs mount` for the courier. It is forked before MPI_Init, so that nothing of MPI and of
 * the launcher is in the processes of the mount: no descriptors, no threads' memory, no binding to one processor, no
 * session that is ended with the job.
 *
 * It executes the command when it is asked to, and passes on what that says on stderr: each line with `name` before it,
 * except for the last one of a command that fails: those are the words of `why`. */
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
    bool locks, has_mounter; /* it has the lock, and a socket of dealfs-mounter */
    char name[160];          /* who we are, for people; "": nobody else is there */
    bool mounted;            /* by it, and not undone */
    bool begun;              /* a mount that is not ended */
};

/* 0 or -errno. The lock and the mounter's socket are for the mount that the command makes: the helper alone has them
 * from here on. It becomes the user that the arguments name. */
int helper_start(struct courier_helper *helper, const struct arguments *arguments);
/* All of these wait, and return 0; else -EIO and why. */
/* `catalog` (-1: it scans) is what the mount is to have; `looked` (-1: nothing), what other nodes have looked at
 * already (scanner.h, scan_portion): one of the two. Both stay the caller's. */
int helper_mount(struct courier_helper *helper, int catalog, int looked, struct str *why);
/* The same in two steps, for a mount that resizes: its command is given `courier`, the other end of a socket to us
 * (fs/wire/resizing.h), and ends when the mount is up. Between the two nothing else is asked of the helper. */
int helper_begin_mount(struct courier_helper *helper, int catalog, int looked, int courier, struct str *why);
int helper_end_mount(struct courier_helper *helper, struct str *why);
bool helper_has_ended(const struct courier_helper *helper); /* its command has, begun or not */
/* No mount: this node's part of the files is looked at, and what comes of it is written to `looked`. */
int helper_look(struct courier_helper *helper, uint32_t part, uint32_t parts, int looked, struct str *why);
int helper_scan(struct courier_helper *helper, const char *path, struct str *why);
/* Take the mount away again that it has made, if it has. */
void helper_undo(struct courier_helper *helper, const char *mountpoint);
void helper_end(struct courier_helper *helper);

#endif
