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
    uint32_t object;                /* another file with the same name has another one; 0: not known */
};

/* STATE_EXCUSED: only the ctime differs, and another mode, owner or number of links of the same object explains that.
 * (The bytes may have changed as well, if somebody restored the mtime.) */
enum state_change { STATE_SAME, STATE_EXCUSED, STATE_SIZE, STATE_MTIME, STATE_CTIME };

/* The part of stat that a catalog needs; name NULL: of fd itself. AT_STATX_FORCE_SYNC bypasses caches of network
 * filesystems. 0 or -errno. `object`: see file_state; NULL: not needed. It is one system call, except where files have
 * no time of birth. */
int state_look(int fd, const char *name, int flags, struct stat *st, uint32_t *object);
/* The mount has no ACLs. So of a file or directory with a POSIX ACL, remove from the mode each right of the group or
 * others that the ACL denies to anybody who may be one of them. Only needed where other users may use the mount.
 * `without`: 1 + st_dev of a filesystem that has no ACLs, and is not asked; 0: none is known; NULL: not remembered. */
void state_limit_mode(int fd, const char *name, struct stat *st, _Atomic uint64_t *without);
int64_t state_time(struct timespec t); /* nanoseconds since 1970, clamped to the valid range */
struct file_state state_from(const struct stat *st, uint32_t object);
/* The same, for a comparison with `before` of a catalog. `acls`: that catalog respects ACLs. An ACL is only read if the
 * ctime differs: it does not change without the ctime. */
struct file_state state_like(const struct file_state *before, bool acls, int fd, const char *name,
                             const struct stat *st, uint32_t object);
enum state_change state_compare(const struct file_state *before, const struct file_state *now);

#endif
