/* Build a catalog: a parallel scan of the source, of all of it or of what changed. */
#ifndef FS_CATALOG_SCAN_H
#define FS_CATALOG_SCAN_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"

enum rescan { RESCAN_AUTO, RESCAN_NEVER, RESCAN_ALWAYS };

struct scan_progress {
    uint64_t directories, files, bytes;
    uint64_t reused; /* directories taken over from the catalog of before */
};

struct scan_options {
    int threads; /* 0: 16, which suits slow sources */
    enum rescan rescan;
    /* Called about ten times a second from the thread that called scan, and once at the end; a non-zero return
     * stops the scan with -ECANCELED, and the kept catalog stays. May be NULL. */
    int (*progress)(void *user, const struct scan_progress *now);
    void *user;
};

/* Bring the catalog file at `path` up to date with the source directory `source_fd`, and open it.
 *
 * RESCAN_AUTO: where the kept catalog has a directory whose mtime and ctime still match, its entries are taken from
 * there without a look at them; a directory that changed later than two seconds before the scan of before began
 * counts as changed. (The ctime also catches a directory that took another's place, or whose mtime was set back.)
 * NEVER: a kept catalog is taken as it is. A kept catalog that is damaged or of another version is logged, and all is
 * scanned.
 *
 * The file is replaced atomically (through PATH.new), and only when the scan succeeded; where nothing changed, only
 * the time of the scan is written into it. On failure `why` has a line for people: -ECANCELED, -EFBIG (too many
 * files), -EBUSY (somebody else writes this catalog), … A directory that cannot be read, or an entry that cannot be
 * looked at, is logged and counted, tried anew by the next scan, and fails this one only if it is the root. */
int scan_source(int source_fd, const char *path, const struct scan_options *options, struct catalog **catalog,
                struct str *why, struct scan_progress *result);

#endif
