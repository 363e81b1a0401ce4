/* Replies to /dev/fuse. Replies of libfuse go through a function of ours; our own replies do not go through libfuse. */
#ifndef FS_FUSE_REPLY_H
#define FS_FUSE_REPLY_H

#include <fuse_lowlevel.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { REPLY_FDS = 64 };

typedef ssize_t reply_writer(int fd, struct iovec *iov, int count, void *user);

/* From now on libfuse calls `writer`, with NULL, instead of writing to `fd`, which must be below REPLY_FDS. The session
 * closes `fd`; call reply_detach before. */
int reply_attach(struct fuse_session *fuse, int fd, reply_writer *writer);
void reply_detach(int fd);

ssize_t reply_write(int fd, const struct iovec *iov, int count);
/* `error` is negative. */
ssize_t reply_error(int fd, uint64_t unique, int error);

/* The handler of ioctl: ENOTTY. Python asks for each file that it opens whether it is a terminal. */
void reply_no_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument, struct fuse_file_info *fi,
                    unsigned flags, const void *in, size_t in_size, size_t out_size);

#endif
