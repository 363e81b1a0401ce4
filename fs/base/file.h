/* Files and folders of our own: state, run directory, shards. Never used on the source or on a mount of ours. */
#ifndef FS_BASE_FILE_H
#define FS_BASE_FILE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int file_read(int dir, const char *path, size_t most, struct str *out); /* appended; -EFBIG above `most` */
int file_read_fd(int fd, size_t most, struct str *out);

/* All or nothing: a temporary beside it, fsync, rename. */
int file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode);
int file_write_all(int fd, const void *bytes, size_t n); /* 0 or -errno; EINTR and short writes handled */

int dir_make(const char *path, mode_t mode); /* with its parents, of the same mode; 0 when it is there */
/* rm -rf of one name, never entering a mount nor following a link: 0, also when it was not there, or the first error
 * after all that could be removed has been. -EBUSY: something is mounted there. */
int dir_remove_tree(int dir, const char *path);

/* The type of the file system that holds path: is it one that other machines share? 1, 0 or -errno. */
int file_on_network(const char *path);

uint64_t clock_now(void);      /* nanoseconds, monotonic */
uint64_t clock_realtime(void); /* nanoseconds since 1970 */

#endif
