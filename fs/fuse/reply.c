#include "fs/fuse/reply.h"

#include <errno.h>
#include <linux/fuse.h>

ssize_t reply_write(int fd, const struct iovec *iov, int count)
{
    ssize_t n;
    do
        n = writev(fd, iov, count);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t reply_error(int fd, uint64_t unique, int error)
{
    struct fuse_out_header out = {.len = sizeof out, .error = error, .unique = unique};
    return reply_write(fd, &(struct iovec){&out, sizeof out}, 1);
}
