/* Our files and folders: state, run directory, shards. Not for the source or for our mounts. */
#ifndef FS_BASE_FILE_H
#define FS_BASE_FILE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Appends the contents; -EFBIG: longer than `most`; -EINVAL: not a regular file. Never waits for the other end of a
 * FIFO. */
int file_read(int dir, const char *path, size_t most, struct str *out);
int file_read_fd(int fd, size_t most, struct str *out);

/* Maps a whole file of at least `least` bytes for reading. -EBADMSG: it is shorter, or not a regular file. The mapping
 * does not prevent sealing. */
int file_map(int fd, size_t least, void **map, size_t *n);

/* All or nothing: writes a temporary file next to it, then fsync and rename. */
int file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode);
struct iovec;
int file_write_atomic_parts(int dir, const char *path, const struct iovec *part, int parts, mode_t mode);
int file_write_all(int fd, const void *bytes, size_t n); /* 0 or -errno; handles EINTR and short writes */

/* From the positions of both files to the end; -EFBIG: more than `most` bytes, of which about as many were written. */
int file_copy(int from, int to, uint64_t most);
int file_copy_atomic(int from, const char *path); /* like file_write_atomic; mode 0600 */
/* A descriptor of sealed memory with these bytes, or -errno. */
int file_memory(const char *name, const void *bytes, size_t n);
/* Seals a memfd, so that nobody can change it. It must have been written by descriptor: a mapping would prevent
 * sealing. */
int file_seal(int fd);
bool file_is_sealed(int fd);

int dir_make(const char *path, mode_t mode); /* with its parents, of the same mode; 0 if it exists */
/* rm -rf of one name, without entering mounts or following links: 0, also if it did not exist; or the first error,
 * after everything else was removed. -EBUSY: something is mounted there. -ENAMETOOLONG: directories nested deeper than
 * DIR_DEEPEST stay. */
enum { DIR_DEEPEST = 64 };
int dir_remove_tree(int dir, const char *path);
uint64_t dir_bytes(int dir, const char *path); /* disk usage of such a tree */
/* Is something mounted exactly there? Its server, which may hang, is not asked. */
bool dir_has_mount(int dir, const char *path);

#endif
