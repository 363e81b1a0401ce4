/* Frames on the socket between courier and server, and how the two find each other.
 *
 * The socket is reached through /proc/self/fd, since the path of a state directory may be longer than a socket's may
 * be. A new server puts its socket in the place of the old one: whoever has the state directory's lock is the one that
 * listens, and a server that lingers in the kernel after its death may still hold the old one. */
#include "fs/world/attach.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 4 };

_Static_assert(sizeof(struct attach_frame) == 16, "a frame's head is 16 bytes");

/* Frames. */

static void advance(struct iovec **part, size_t *parts, size_t n)
{
    while (*parts && n >= (*part)->iov_len) {
        n -= (*part)->iov_len;
        (*part)++;
        (*parts)--;
    }
    if (*parts) {
        (*part)->iov_base = (char *)(*part)->iov_base + n;
        (*part)->iov_len -= n;
    }
}

/* The descriptors go with the first byte. */
static int send_all(int socket, struct iovec *part, size_t parts, const int *fds)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(ATTACH_FDS * sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {0};
    if (fds) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(ATTACH_FDS * sizeof(int));
        memcpy(CMSG_DATA(c), fds, ATTACH_FDS * sizeof(int));
    }
    while (parts) {
        message.msg_iov = part;
        message.msg_iovlen = parts < IOV_MAX ? parts : IOV_MAX;
        ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EPIPE ? -ECONNRESET : -errno;
        advance(&part, &parts, (size_t)n);
        message.msg_control = NULL;
        message.msg_controllen = 0;
    }
    return 0;
}

int attach_sendv(int socket, enum attach_kind kind, const struct iovec *part, int parts, const int fds[ATTACH_FDS])
{
    struct attach_frame frame = {.kind = kind};
    CLEANUP_FREE struct iovec *all = calloc((size_t)parts + 1, sizeof *all);
    if (!all)
        return -ENOMEM;
    all[0] = (struct iovec){&frame, sizeof frame};
    for (int i = 0; i < parts; i++) {
        all[i + 1] = part[i];
        frame.length += part[i].iov_len;
    }
    if (frame.length > ATTACH_MOST)
        return -EMSGSIZE;
    return send_all(socket, all, (size_t)parts + 1, fds);
}

int attach_send(int socket, enum attach_kind kind, const void *payload, size_t n, const int fds[ATTACH_FDS])
{
    return attach_sendv(socket, kind, &(struct iovec){(void *)payload, n}, 1, fds);
}

static void close_all(int fds[ATTACH_FDS])
{
    for (int i = 0; i < ATTACH_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

/* Put what was passed into free places; what has none is closed. */
static void keep_descriptors(const struct cmsghdr *c, int fds[ATTACH_FDS], bool *bad)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd, place = 0;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        while (place < ATTACH_FDS && fds[place] >= 0)
            place++;
        if (place < ATTACH_FDS) {
            fds[place] = fd;
            continue;
        }
        close(fd);
        *bad = true;
    }
}

static ssize_t receive_some(int socket, char *to, size_t n, int fds[ATTACH_FDS], bool *bad)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(ATTACH_FDS * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &(struct iovec){to, n},
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            keep_descriptors(c, fds, bad);
    if (message.msg_flags & MSG_CTRUNC)
        *bad = true;
    return got ? got : -ECONNRESET;
}

static int receive_all(int socket, void *to, size_t n, int fds[ATTACH_FDS], bool *bad)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = receive_some(socket, (char *)to + at, n - at, fds, bad);
        if (got < 0)
            return (int)got;
        at += (size_t)got;
    }
    return 0;
}

static int receive_frame(int socket, struct attach_frame *frame, void **payload, int fds[ATTACH_FDS])
{
    bool bad = false;
    int error = receive_all(socket, frame, sizeof *frame, fds, &bad);
    if (error)
        return error;
    if (bad || frame->zero)
        return -EBADMSG;
    if (frame->length > ATTACH_MOST)
        return -EMSGSIZE;
    CLEANUP_FREE char *bytes = malloc(frame->length + 1); /* a text ends */
    if (!bytes)
        return -ENOMEM;
    error = receive_all(socket, bytes, frame->length, fds, &bad);
    if (error || bad)
        return error ? error : -EBADMSG;
    bytes[frame->length] = '\0';
    *payload = steal_pointer(bytes);
    return 0;
}

int attach_receive(int socket, uint32_t *kind, void **payload, size_t *n, int fds[ATTACH_FDS])
{
    struct attach_frame frame;
    int passed[ATTACH_FDS];
    void *bytes = NULL;
    memset(passed, 0xff, sizeof passed);
    int error = receive_frame(socket, &frame, &bytes, passed);
    bool some = passed[0] >= 0, all = passed[ATTACH_FDS - 1] >= 0;
    if (!error && some && !all)
        error = -EBADMSG;
    if (error || !fds)
        close_all(passed);
    if (error) {
        free(bytes);
        return error;
    }
    if (fds)
        memcpy(fds, passed, sizeof passed);
    *kind = frame.kind;
    *payload = bytes;
    *n = frame.length;
    return 0;
}

/* The socket. */

static int open_state(const char *state)
{
    int fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static struct sockaddr_un address_of(int directory, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
    return address;
}

/* Whoever may enter the state directory is root or its owner; the kernel says who it is. */
static int check_peer(int socket, uid_t other)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return -errno;
    return peer.uid == 0 || peer.uid == geteuid() || peer.uid == other ? 0 : -EPERM;
}

int attach_connect(const char *state)
{
    CLEANUP_CLOSE int directory = open_state(state);
    if (directory < 0)
        return directory;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    struct sockaddr_un address = address_of(directory, "courier");
    int r;
    do /* -EAGAIN where a server listens and does not accept: whoever asks has better things to do than to wait here */
        r = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (r < 0 && errno == EINTR);
    if (r < 0 || fcntl(fd, F_SETFL, 0) < 0)
        return -errno;
    /* Root may form a world over the mounts of others (owner=USER). */
    struct stat st;
    bool root = geteuid() == 0 && fstat(directory, &st) == 0;
    int error = check_peer(fd, root ? st.st_uid : 0);
    return error ? error : steal_fd(fd);
}

int attach_listen(const char *state)
{
    CLEANUP_CLOSE int directory = open_state(state);
    if (directory < 0)
        return directory;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    struct sockaddr_un address = address_of(directory, "new-courier");
    if (unlinkat(directory, "new-courier", 0) < 0 && errno != ENOENT)
        return -errno;
    /* The mode of a socket that is not bound yet becomes that of its name. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0 ||
        renameat(directory, "new-courier", directory, "courier") < 0) {
        int error = -errno;
        unlinkat(directory, "new-courier", 0);
        return error;
    }
    return steal_fd(fd);
}

int attach_accept(int listening)
{
    int r;
    do
        r = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    CLEANUP_CLOSE int fd = r;
    int error = check_peer(fd, 0);
    return error ? error : steal_fd(fd);
}
