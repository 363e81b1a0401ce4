/* What tells whether a file is the same that it was: a file can be rewritten in place, without its directory changing,
 * and have its size and its mtime put back; its ctime tells. */
#ifndef FS_CATALOG_FILE_STATE_H
#define FS_CATALOG_FILE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_state {
    uint64_t size;
    int64_t mtime, ctime;           /* nanoseconds since 1970; a ctime of 0 is not compared */
    uint32_t mode, uid, gid, links; /* the mode without the type: these also change the ctime, but not the bytes */
};

enum state_change { STATE_SAME, STATE_SIZE, STATE_MTIME, STATE_CTIME };

/* What a catalog needs of stat, and no more; name NULL: of fd itself. With AT_STATX_FORCE_SYNC not what a network file
 * system still remembers. 0 or -errno.
 *
 * Where a file has a POSIX ACL, its mode is less than stat has it: the mount has no ACLs, so the mode takes a right
 * from the group or others where the ACL keeps it from anybody who may be one of them. */
int state_look(int fd, const char *name, int flags, struct stat *st);
/* The same for what stat has told. */
void state_limit_mode(int fd, const char *name, struct stat *st);
int64_t state_time(struct timespec t); /* nanoseconds since 1970, clamped to what fits */
struct file_state state_from(const struct stat *st);
/* Of the bytes, as far as it can be seen: a ctime that mode, owner or number of links explain is no change. */
enum state_change state_compare(const struct file_state *before, const struct file_state *now);

#endif
