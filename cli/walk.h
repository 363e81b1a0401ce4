/* Compare the whole tree of a mount with its source, by several threads. */
#ifndef CLI_WALK_H
#define CLI_WALK_H

#include "fs/base/str.h"

#include <signal.h>
#include <stdint.h>

struct walk_counts {
    uint64_t files, directories, links; /* compared */
    uint64_t bytes;
    uint64_t left_out;   /* sockets, fifos, devices of the source, which the mount does not have */
    uint64_t unreadable; /* not compared, because this user may not read them */
};

struct walk_options {
    int jobs;
    /* About ten times a second, from the calling thread. */
    void (*progress)(void *user, const struct walk_counts *now);
    void *user;
    const volatile sig_atomic_t *stop; /* becomes non-zero: -ECANCELED */
};

/* 0: they are the same. 1: `difference` has a line about the first, in the order of the walk, whatever the number of
 * jobs. -errno: could not be done. `.dealfs` at either root is passed over. */
int walk_compare(int source, int mount, const struct walk_options *options, struct walk_counts *counts,
                 struct str *difference);

#endif
