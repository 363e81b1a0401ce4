/* Options and progress of a scan. */
#ifndef FS_CATALOG_SCAN_OPTIONS_H
#define FS_CATALOG_SCAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum rescan { RESCAN_AUTO, RESCAN_NEVER, RESCAN_ALWAYS, RESCAN_NAMES };

struct scan_progress {
    uint64_t directories, files, bytes;
    uint64_t reused;    /* directories whose names were reused from the previous catalog */
    uint64_t shared;    /* files that other nodes have looked at */
    uint64_t rewritten; /* known files with other bytes than before, as far as visible */
};

struct scan_options {
    int threads; /* 0: 64, which suits slow sources */
    enum rescan rescan;
    int looked;        /* RESCAN_AUTO: descriptor with the results of scan_portion on other nodes; 0: none */
    bool kept;         /* old cached data may exist, even without the previous catalog */
    bool acls;         /* other users may use the mount: modes respect ACLs */
    bool ignore_ctime; /* for sources with unstable ctimes: compare only size and mtime */
    /* Called about ten times per second by the calling thread, and once at the end. A nonzero result stops the scan
     * with -ECANCELED, and the cached catalog stays. NULL: not called. */
    int (*progress)(void *user, const struct scan_progress *now);
    void *user;
};

#endif
