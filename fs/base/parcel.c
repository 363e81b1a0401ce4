/* The buffer for descriptors has the exact size, so that the kernel delivers no more than there are places. */
#include "fs/base/parcel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union ancillary {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(PARCEL_MOST * sizeof(int))];
};

ssize_t parcel_send(int socket, const void *bytes, size_t n, const int *fds, size_t most, int flags)
{
    union ancillary control = {.room = {0}};
    struct iovec all = {(void *)bytes, n};
    struct msghdr m = {.msg_iov = &all, .msg_iovlen = 1};
    size_t count = 0;
    ssize_t sent;
    while (fds && count < most && count < PARCEL_MOST && fds[count] >= 0)
        count++;
    if (count > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
    }
    do
        sent = sendmsg(socket, &m, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static size_t next_free(const int *fds, size_t most, size_t i)
{
    while (i < most && fds[i] >= 0)
        i++;
    return i;
}

static void take_ancillary(const struct cmsghdr *c, int *fds, size_t most, struct ucred *from)
{
    if (c->cmsg_level != SOL_SOCKET)
        return;
    if (c->cmsg_type == SCM_CREDENTIALS && from)
        memcpy(from, CMSG_DATA(c), sizeof *from);
    size_t count = c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds : 0;
    for (size_t i = 0, place = 0; i < count; i++) {
        place = next_free(fds, most, place);
        memcpy(&fds[place], CMSG_DATA(c) + i * sizeof *fds, sizeof *fds);
    }
}

ssize_t parcel_receive(int socket, void *to, size_t n, int *fds, size_t most, struct ucred *from)
{
    union ancillary control;
    size_t places = 0;
    for (size_t i = 0; i < most && i < PARCEL_MOST; i++)
        places += fds[i] < 0;
    size_t room = (from ? CMSG_SPACE(sizeof(struct ucred)) : 0) + (places > 0 ? CMSG_LEN(places * sizeof *fds) : 0);
    struct msghdr m = {.msg_iov = &(struct iovec){to, n}, .msg_iovlen = 1};
    ssize_t got;
    do {
        m.msg_control = &control;
        m.msg_controllen = room;
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        take_ancillary(c, fds, most, from);
    return m.msg_flags & MSG_CTRUNC ? -EBADMSG : got;
}
