/* Messages to and from `dealfs-mounter`. Both ends bound what they take: neither believes the other's lengths. */
#include "fs/attach/mounter.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

union ancillary {
    struct cmsghdr header;
    char room[CMSG_SPACE(MOUNTER_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int mounter_send(int socket, const void *message, size_t n, const int fds[MOUNTER_FDS])
{
    union ancillary control = {.room = {0}};
    struct iovec all = {(void *)message, n};
    struct msghdr m = {.msg_iov = &all, .msg_iovlen = 1};
    size_t count = 0;
    ssize_t sent;

    while (count < MOUNTER_FDS && fds && fds[count] >= 0)
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
        sent = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* who does not read need not be answered */
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

static void take_ancillary(const struct cmsghdr *c, int fds[MOUNTER_FDS], pid_t *from)
{
    struct ucred sender;

    size_t count =
        c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (i < MOUNTER_FDS)
            fds[i] = fd;
        else
            close(fd);
    }
    if (!from || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
        return;
    memcpy(&sender, CMSG_DATA(c), sizeof sender);
    *from = sender.pid;
}

ssize_t mounter_receive(int socket, void *message, size_t n, int fds[MOUNTER_FDS], pid_t *from)
{
    union ancillary control;
    struct iovec all = {message, n};
    struct msghdr m = {.msg_iov = &all, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got;

    fds[0] = fds[1] = -1;
    do
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        take_ancillary(c, fds, from);
    return got;
}

static ssize_t await_reply(int socket, struct mounter_reply *reply, int got[MOUNTER_FDS])
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int n;

    do
        n = poll(&ready, 1, MOUNTER_SECONDS * 1000);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    ssize_t length = mounter_receive(socket, reply, sizeof *reply, got, NULL);
    return length == sizeof *reply ? 0 : length < 0 ? length : -EPIPE;
}

static void close_all(int fds[MOUNTER_FDS])
{
    for (int i = 0; i < MOUNTER_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int mounter_ask(int mounter, const struct mounter_request *request, int given, struct mounter_reply *reply,
                int got[MOUNTER_FDS], struct str *why)
{
    int ends[2], fds[MOUNTER_FDS] = {-1, -1};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    CLEANUP_CLOSE int answer = ends[0];
    int error = mounter_send(mounter, request, sizeof *request, (const int[MOUNTER_FDS]){ends[1], given});
    close(ends[1]);
    if (!error)
        error = (int)await_reply(answer, reply, fds);
    if (error) {
        str_addf(why, "ask dealfs-mounter: %s",
                 error == -EPIPE || error == -ECONNRESET ? "it has ended" : strerror(-error));
        return error == -ECONNRESET ? -EPIPE : error;
    }
    reply->why[sizeof reply->why - 1] = '\0';
    if (reply->error) {
        str_adds(why, reply->why[0] ? reply->why : strerror(-reply->error));
        close_all(fds);
    } else if (got) {
        memcpy(got, fds, sizeof fds);
    } else {
        close_all(fds);
    }
    return reply->error;
}

int mounter_do(int mounter, enum mounter_verb verb, uint64_t bytes, struct str *why)
{
    struct mounter_request request = {.verb = verb, .bytes = bytes};
    struct mounter_reply reply;

    return mounter_ask(mounter, &request, -1, &reply, NULL, why);
}
