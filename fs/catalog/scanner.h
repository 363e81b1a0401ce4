/* Build a catalog: a parallel scan of the source, of all of it or of what changed. */
#ifndef FS_CATALOG_SCANNER_H
#define FS_CATALOG_SCANNER_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/scan-options.h"

/* Bring the catalog file at `path` up to date with the source directory `source_fd`, and open it.
 *
 * RESCAN_AUTO: where the kept catalog has a directory whose mtime and ctime still match, the names in it are taken from
 * there, and each file is looked at, for it can be rewritten in place without its directory changing. A directory that
 * changed later than two seconds before the scan of before began counts as changed. (The ctime also catches a directory
 * that took another's place, or whose mtime was set back.)
 * NAMES: the files in such a directory are not looked at, except for those that changed within two seconds before that
 * scan.
 * NEVER: a kept catalog is taken as it is. A kept catalog that is damaged or of another version is logged, and all is
 * scanned.
 *
 * The file is replaced atomically (through PATH.new), and only when the scan succeeded; where nothing changed, only
 * the time of the scan is written into it. On failure `why` has a line for people: -ECANCELED, -EFBIG (too many
 * files), -EBUSY (somebody else writes this catalog), … A directory that cannot be read, or an entry that cannot be
 * looked at, is logged and counted, tried again by the next scan, and fails this one only if it is the root. */
int scan_source(int source_fd, const char *path, const struct scan_options *options, struct catalog **catalog,
                struct str *why, struct scan_progress *result);

/* Look at a part of the files of the catalog at `path`, as a RESCAN_AUTO of another node would that has the same, and
 * write to `fd` what is not as it was. Several nodes' may be written one after the other. 0 or -errno. */
struct scan_part {
    uint32_t number, count;
};
int scan_portion(int source_fd, const char *path, const struct scan_options *options, struct scan_part part, int fd);

#endif
