/* Replies on their way to /dev/fuse: libfuse's pass a function of ours, and ours do not pass libfuse. */
#ifndef FS_FUSE_REPLY_H
#define FS_FUSE_REPLY_H

#include <fuse_lowlevel.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { REPLY_FDS = 64 };

typedef ssize_t reply_writer(int fd, struct iovec *iov, int count, void *user);

/* From now on libfuse calls `writer`, with NULL, instead of writing to `fd`, which is below REPLY_FDS. The session
 * closes it; reply_detach comes before. */
int reply_attach(struct fuse_session *fuse, int fd, reply_writer *writer);
void reply_detach(int fd);

ssize_t reply_write(int fd, const struct iovec *iov, int count);
/* `error` is negative. */
ssize_t reply_error(int fd, uint64_t unique, int error);

#endif
