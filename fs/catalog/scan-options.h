/* How a source is scanned, and how far a scan is. */
#ifndef FS_CATALOG_SCAN_OPTIONS_H
#define FS_CATALOG_SCAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum rescan { RESCAN_AUTO, RESCAN_NEVER, RESCAN_ALWAYS, RESCAN_NAMES };

struct scan_progress {
    uint64_t directories, files, bytes;
    uint64_t reused;    /* directories whose names were taken over from the catalog of before */
    uint64_t shared;    /* files that other nodes have looked at */
    uint64_t rewritten; /* files of before that have other bytes now, as far as it can be seen */
};

struct scan_options {
    int threads; /* 0: 64, which suits slow sources */
    enum rescan rescan;
    int looked;        /* RESCAN_AUTO: descriptor of what scan_portion wrote on other nodes; 0: none */
    bool kept;         /* bytes of before may be kept, also where the catalog of before is not */
    bool ignore_ctime; /* it wanders: size and mtime alone say whether a file is the same */
    /* Called about ten times per second from the thread that called scan, and once at the end; a non-zero return
     * stops the scan with -ECANCELED, and the kept catalog stays. NULL: not called. */
    int (*progress)(void *user, const struct scan_progress *now);
    void *user;
};

#endif
