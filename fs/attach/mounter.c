/* Messages to and from `dealfs-mounter`. Both ends bound what they take: neither believes the other's lengths. */
#include "fs/attach/mounter.h"

#include "fs/base/cleanup.h"
#include "fs/base/parcel.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

int mounter_send(int socket, const void *message, size_t n, const int fds[MOUNTER_FDS])
{
    /* who does not read need not be answered */
    ssize_t sent = parcel_send(socket, message, n, fds, MOUNTER_FDS, MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

ssize_t mounter_receive(int socket, void *message, size_t n, int fds[MOUNTER_FDS], pid_t *from)
{
    fds[0] = fds[1] = -1;
    return parcel_receive(socket, message, n, fds, MOUNTER_FDS, from);
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
