/* Root mounts for another user (owner=USER): one small process stays root, all others become USER permanently. */
#ifndef CLI_MOUNT_SPLIT_H
#define CLI_MOUNT_SPLIT_H

#include "cli/mount/steps.h"

/* The command line of dealfs-mounter, with room for more words. It borrows the two paths. */
struct mounter_words {
    char uid[16], gid[16], tmpfs[32], readahead[32];
    const char *words[12];
    int n;
};
void mounter_words_make(struct mounter_words *words, const struct mount_options *options, const struct owner *owner,
                        const char *mountpoint, const char *control);

/* Starts dealfs-mounter, with the options of root's command line, and makes a folder for USER in an SSD directory that
 * only root may write to. Opens no files of USER. If a courier has already started the mounter (options.mounter_fd),
 * uses that one; with options.mounter, connects to the one that listens there. Does nothing if the mount is not for
 * another user. */
int split_begin(struct start *s, struct str *why);
/* From here on this process is USER, and cannot return. */
int split_become(struct start *s, struct str *why);

/* Prepares, in a child with the rights of USER, a program that must still be root (the courier, until MPI_Init). The
 * results are in `s`: source, mountpoint, state directory and lock. */
int split_prepare(struct start *s, int (*prepare)(struct start *, struct str *), struct str *why);

#endif
