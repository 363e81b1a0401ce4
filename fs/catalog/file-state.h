/* Has a file changed? A file can be rewritten in place without its directory changing, and its size and mtime restored;
 * its ctime shows that. */
#ifndef FS_CATALOG_FILE_STATE_H
#define FS_CATALOG_FILE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_state {
    uint64_t size;
    int64_t mtime, ctime;           /* nanoseconds since 1970; a ctime of 0 is not compared */
    uint32_t mode, uid, gid, links; /* mode without type. Changes of these also change the ctime, but not the bytes */
};

enum state_change { STATE_SAME, STATE_SIZE, STATE_MTIME, STATE_CTIME };

/* The part of stat that a catalog needs; name NULL: of fd itself. AT_STATX_FORCE_SYNC bypasses caches of network
 * filesystems. 0 or -errno.
 *
 * The mount has no ACLs. So for a file with a POSIX ACL, a right of the group or others is removed from the mode if the
 * ACL denies it to anybody who may be one of them. */
int state_look(int fd, const char *name, int flags, struct stat *st);
/* The same for a result of stat. */
void state_limit_mode(int fd, const char *name, struct stat *st);
int64_t state_time(struct timespec t); /* nanoseconds since 1970, clamped to the valid range */
struct file_state state_from(const struct stat *st);
/* Of the bytes, as far as visible: a new ctime that a change of mode, owner or number of links explains is no
 * change. */
enum state_change state_compare(const struct file_state *before, const struct file_state *now);

#endif
