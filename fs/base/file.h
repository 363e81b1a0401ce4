/* Files and folders of our own: state, run directory, shards. Never used on the source or on a mount of ours. */
#ifndef FS_BASE_FILE_H
#define FS_BASE_FILE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Appended; -EFBIG above `most`, -EINVAL for what is no file. Never waits for a FIFO's other end. */
int file_read(int dir, const char *path, size_t most, struct str *out);
int file_read_fd(int fd, size_t most, struct str *out);

/* All or nothing: a temporary beside it, fsync, rename. */
int file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode);
struct iovec;
int file_write_atomic_parts(int dir, const char *path, const struct iovec *part, int parts, mode_t mode);
int file_write_all(int fd, const void *bytes, size_t n); /* 0 or -errno; EINTR and short writes handled */

/* From where each is, to the end; -EFBIG where that is further than `most` bytes, of which about as many are
 * written. */
int file_copy(int from, int to, uint64_t most);
int file_copy_atomic(int from, const char *path); /* as file_write_atomic; mode 0600 */
/* Memory with a name that nobody can change any more once it is sealed. Written with a descriptor: no map may stand. */
int file_seal(int fd);
bool file_is_sealed(int fd);

int dir_make(const char *path, mode_t mode); /* with its parents, of the same mode; 0 when it is there */
/* rm -rf of one name, never entering a mount nor following a link: 0, also when it was not there, or the first error
 * after all that could be removed has been. -EBUSY: something is mounted there. -ENAMETOOLONG: directories are nested
 * deeper than DIR_DEEPEST; they are left. */
enum { DIR_DEEPEST = 64 };
int dir_remove_tree(int dir, const char *path);
uint64_t dir_bytes(int dir, const char *path); /* that the files of such a tree take */

#endif
