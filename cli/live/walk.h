/* Compare the whole tree of a mount with its source, by several threads. */
#ifndef CLI_LIVE_WALK_H
#define CLI_LIVE_WALK_H

#include "cli/base/progress.h"

#include <signal.h>
#include <stdatomic.h>

/* What has been compared so far. */
struct walk_counts {
    uint64_t files, directories, links;
    uint64_t left_out;           /* sockets, fifos, devices of the source, which the mount does not have */
    _Atomic uint64_t unreadable; /* not compared, because this user may not read them */
    _Atomic uint64_t bytes;
};

struct walk_options {
    int jobs;
    struct progress_bar *progress; /* shown by the calling thread; NULL: not shown */
    struct progress_now total;     /* its totals */
    const struct derived *derived; /* see compare.h */
    struct crew *crew;
    bool acls;                         /* see compare.h */
    const volatile sig_atomic_t *stop; /* becomes non-zero: -ECANCELED */
};

/* 0: they are the same. 1: `difference` has a line about the first, in the order of the walk, whatever the number of
 * jobs. -errno: could not be done. `.dealfs` at either root is passed over. `counts` begins with zeros. */
int walk_compare(int source, int mount, const struct walk_options *options, struct walk_counts *counts,
                 struct str *difference);

#endif
