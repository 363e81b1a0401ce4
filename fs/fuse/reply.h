/* Replies written to /dev/fuse past libfuse. */
#ifndef FS_FUSE_REPLY_H
#define FS_FUSE_REPLY_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

ssize_t reply_write(int fd, const struct iovec *iov, int count);
/* `error` is negative. */
ssize_t reply_error(int fd, uint64_t unique, int error);

#endif
