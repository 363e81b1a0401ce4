#include "fs/fuse/reply.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_FUSE_SESSION_CUSTOM_IO
/* libfuse requires it, but requests do not come through libfuse. */
static ssize_t read_request(int fd, void *buffer, size_t n, void *user)
{
    (void)user;
    return read(fd, buffer, n);
}

int reply_attach(struct fuse_session *fuse, int fd, reply_writer *writer)
{
    const struct fuse_custom_io hooks = {.writev = writer, .read = read_request};
    return fuse_session_custom_io(fuse, &hooks, fd);
}

void reply_detach(int fd)
{
    (void)fd;
}
#else
static _Atomic(reply_writer *) writers[REPLY_FDS];

/* libfuse before 3.13 cannot use custom I/O functions. It calls this writev instead of libc's. */
ssize_t writev(int fd, const struct iovec *iov, int count)
{
    reply_writer *writer = fd >= 0 && fd < REPLY_FDS ? writers[fd] : NULL;
    return writer ? writer(fd, (struct iovec *)iov, count, NULL) : syscall(SYS_writev, fd, iov, count);
}

/* with a name like this, libfuse mounts nothing and uses the descriptor */
int reply_attach(struct fuse_session *fuse, int fd, reply_writer *writer)
{
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    if (fuse_session_mount(fuse, path))
        return -EBADF;
    writers[fd] = writer;
    return 0;
}

void reply_detach(int fd)
{
    writers[fd] = NULL;
}
#endif

ssize_t reply_write(int fd, const struct iovec *iov, int count)
{
    ssize_t n;
    do
        n = syscall(SYS_writev, fd, iov, count);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t reply_error(int fd, uint64_t unique, int error)
{
    struct fuse_out_header out = {.len = sizeof out, .error = error, .unique = unique};
    return reply_write(fd, &(struct iovec){&out, sizeof out}, 1);
}

void reply_no_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument, struct fuse_file_info *fi,
                    unsigned flags, const void *in, size_t in_size, size_t out_size)
{
    (void)ino, (void)command, (void)argument, (void)fi, (void)flags, (void)in, (void)in_size, (void)out_size;
    fuse_reply_err(req, ENOTTY);
}
