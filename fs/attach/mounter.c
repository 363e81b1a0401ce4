/* Messages to and from `dealfs-mounter`. Both ends limit what they accept: neither trusts the other's lengths. */
#include "fs/attach/mounter.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/parcel.h"
#include "fs/base/ready.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

int mounter_send(int socket, const void *message, size_t n, const int fds[MOUNTER_FDS])
{
    /* if the peer does not read, it gets no answer */
    ssize_t sent = parcel_send(socket, message, n, fds, MOUNTER_FDS, MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

ssize_t mounter_receive(int socket, void *message, size_t n, int fds[MOUNTER_FDS], struct ucred *from)
{
    fds[0] = fds[1] = -1;
    if (from)
        *from = (struct ucred){.uid = (uid_t)-1, .gid = (gid_t)-1};
    return parcel_receive(socket, message, n, fds, MOUNTER_FDS, from);
}

static bool socket_is(int fd, int option, int value)
{
    int found;
    socklen_t n = sizeof found;
    return getsockopt(fd, SOL_SOCKET, option, &found, &n) == 0 && found == value;
}

bool mounter_may_answer(int fd, uid_t asker)
{
    struct ucred other;
    socklen_t n = sizeof other;
    return socket_is(fd, SO_DOMAIN, AF_UNIX) && socket_is(fd, SO_TYPE, SOCK_SEQPACKET) &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &n) == 0 && other.uid == asker && asker != (uid_t)-1;
}

/* Waits for a message. A length other than `n` is an error. */
static ssize_t await_message(int socket, void *message, size_t n, int got[MOUNTER_FDS])
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int polled;
    do
        polled = ready_wait(&ready, 1, MOUNTER_SECONDS * 1000);
    while (polled < 0);
    if (polled == 0)
        return -ETIMEDOUT;
    ssize_t length = mounter_receive(socket, message, n, got, NULL);
    return length == (ssize_t)n ? 0 : length < 0 ? length : length == 0 ? -EPIPE : -EPROTO;
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
        error = (int)await_message(answer, reply, sizeof *reply, fds);
    if (error) {
        str_addf(why, "ask dealfs-mounter: %s",
                 error == -EPIPE || error == -ECONNRESET ? "it has ended, or has ended the connection"
                                                         : strerror(-error));
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

/* --- connecting to a mounter that was started alone --- */

/* If another user listened there, that user would get descriptors of files that only this user may read. */
static bool is_roots(int socket)
{
    struct ucred listener;
    socklen_t n = sizeof listener;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &n) == 0 && listener.uid == 0;
}

static int open_connection(const char *path)
{
    const struct timeval patience = {.tv_sec = MOUNTER_SECONDS}; /* connect waits while the queue is full */
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return -ENAMETOOLONG;
    strcpy(to.sun_path, path);
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    return is_roots(fd) ? steal_fd(fd) : -EPERM;
}

static int take_offer(int socket, struct mounter_offer *offer)
{
    int fds[MOUNTER_FDS] = {-1, -1};
    int error = (int)await_message(socket, offer, sizeof *offer, fds);
    close_all(fds);
    if (!error && offer->form != MOUNTER_FORM)
        error = -EPROTO;
    offer->why[sizeof offer->why - 1] = offer->mountpoint[sizeof offer->mountpoint - 1] = '\0';
    return error;
}

/* The socket; `offer->error` may also be an error. */
static int receive_offer(const char *path, struct mounter_offer *offer, struct str *why)
{
    CLEANUP_CLOSE int fd = open_connection(path);
    int error = fd < 0 ? fd : take_offer(fd, offer);
    const char *reason = fd == -ECONNREFUSED ? "no dealfs-mounter listens there"
                         : fd == -EPERM      ? "the process that listens there is not root"
                         : error == -EPIPE   ? "it has ended"
                         : error == -EPROTO  ? "it is not a dealfs-mounter of this version"
                         : error             ? strerror(-error)
                                             : offer->why;
    if (!error && !offer->error)
        return steal_fd(fd);
    str_adds(why, "dealfs-mounter at ");
    str_add_printable(why, path, strlen(path));
    str_adds(why, ": ");
    str_add_printable(why, reason, strlen(reason));
    return error ? error : steal_fd(fd);
}

int mounter_connect(const char *path, struct mounter_offer *offer, struct str *why)
{
    CLEANUP_CLOSE int fd = receive_offer(path, offer, why);
    return fd < 0 ? fd : offer->error ? offer->error : steal_fd(fd);
}

static int take_left(const char *path, unsigned minor, struct str *why)
{
    const struct mounter_request look = {.verb = MOUNTER_LOOK};
    struct mounter_offer offer;
    struct mounter_reply found;
    CLEANUP_CLOSE int fd = receive_offer(path, &offer, why);
    if (fd < 0 || offer.error != -EEXIST)
        return fd < 0 ? fd : offer.error;
    str_clear(why);
    int error = mounter_ask(fd, &look, -1, &found, NULL, why);
    if (error || found.data_minor != minor) /* another mount is there: ours is gone */
        return error;
    return mounter_do(fd, MOUNTER_TAKE, TAKE_DATA | TAKE_CONTROL, why);
}

int mounter_take_left(const char *path, unsigned minor, struct str *why)
{
    enum { TRIES = 30, PAUSE_MS = 100 };
    int error = take_left(path, minor, why);
    for (int i = 0; error == -EBUSY && i < TRIES; i++) { /* `dealfs mount` learns that a mount is there */
        clock_sleep(PAUSE_MS * MILLISECOND);
        str_clear(why);
        error = take_left(path, minor, why);
    }
    return error;
}
