/* Builds a catalog: a parallel scan of the source, complete or incremental. */
#ifndef FS_CATALOG_SCANNER_H
#define FS_CATALOG_SCANNER_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/scan-options.h"

/* Update the catalog file at `path` to the source directory `source_fd`, and open it.
 *
 *   RESCAN_AUTO  If a directory's mtime and ctime match the cached catalog, its names are reused; each file is looked
 *                at, because it can be rewritten in place without its directory changing. A directory that changed less
 *                than two seconds before the previous scan began counts as changed. (The ctime also shows that a
 *                directory was replaced by another one, or its mtime was restored.)
 *   NAMES        Files in such a directory are not looked at, unless they changed less than two seconds before that
 *                scan.
 *   NEVER        The cached catalog is used unchanged. If it is damaged or of another version, or if it ignored ACLs
 *                that matter now, this is logged, and everything is scanned.
 *
 * If the cached catalog respects ACLs and this scan does not, or the reverse, then all directories are listed and all
 * files looked at; unchanged files keep their versions.
 *
 * The file is replaced atomically (through PATH.new), and only after a successful scan. If nothing changed, only the
 * time of the scan is written into it. On failure `why` has a line for people: -ECANCELED, -EFBIG (too many files),
 * -EBUSY (another process writes this catalog), … A directory or entry that cannot be read is logged, counted, and
 * tried again by the next scan; this scan fails only if it is the root. */
int scan_source(int source_fd, const char *path, const struct scan_options *options, struct catalog **catalog,
                struct str *why, struct scan_progress *result);

/* Look at a part of the files of the catalog at `path`, for a RESCAN_AUTO of another node with the same catalog, and
 * write the differences to `fd`. Results of several nodes may be concatenated. 0 or -errno. */
struct scan_part {
    uint32_t number, count;
};
int scan_portion(int source_fd, const char *path, const struct scan_options *options, struct scan_part part, int fd);

#endif
