/* Frames on the socket between courier and server, and how the two find each other.
 *
 * The socket is accessed through /proc/self/fd, because the path of a state directory may be longer than a socket's
 * path may be. A new server replaces the old socket: the process with the state directory's lock listens. A dead server
 * that lingers in the kernel may still have the old socket. */
#include "fs/wire/message.h"

#include "fs/base/cleanup.h"
#include "fs/base/parcel.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 4, WHOLE_MOST = 1024, PIECE_LEAST = 64 << 10 };

_Static_assert(sizeof(struct message_frame) == 16, "a frame's head is 16 bytes");

/* --- frames --- */

/* The descriptors are sent with the first byte. */
static int send_all(int socket, const void *bytes, size_t n, const int *fds)
{
    for (const char *at = bytes; n > 0; fds = NULL) {
        ssize_t sent = parcel_send(socket, at, n, fds, MESSAGE_FDS, 0);
        if (sent < 0)
            return sent == -EPIPE ? -ECONNRESET : (int)sent;
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* At once, so that a receiver never waits for the rest. */
static int send_whole(int socket, const struct message_frame *frame, const struct iovec *part, int parts,
                      const int fds[MESSAGE_FDS])
{
    char whole[sizeof *frame + WHOLE_MOST];
    size_t n = sizeof *frame;
    memcpy(whole, frame, n);
    for (int i = 0; i < parts; i++) {
        if (part[i].iov_len)
            memcpy(whole + n, part[i].iov_base, part[i].iov_len);
        n += part[i].iov_len;
    }
    return send_all(socket, whole, n, fds);
}

int message_sendv(int socket, enum message_kind kind, const struct iovec *part, int parts, const int fds[MESSAGE_FDS])
{
    struct message_frame frame = {.kind = kind};
    for (int i = 0; i < parts; i++)
        frame.length += part[i].iov_len;
    if (frame.length > MESSAGE_MOST)
        return -EMSGSIZE;
    if (frame.length <= WHOLE_MOST)
        return send_whole(socket, &frame, part, parts, fds);
    int error = send_all(socket, &frame, sizeof frame, fds);
    for (int i = 0; i < parts && !error; i++)
        error = send_all(socket, part[i].iov_base, part[i].iov_len, NULL);
    return error;
}

int message_send(int socket, enum message_kind kind, const void *payload, size_t n, const int fds[MESSAGE_FDS])
{
    return message_sendv(socket, kind, &(struct iovec){(void *)payload, n}, 1, fds);
}

static int receive_all(int socket, void *to, size_t n, int fds[MESSAGE_FDS])
{
    for (size_t at = 0; at < n;) {
        ssize_t got = parcel_receive(socket, (char *)to + at, n - at, fds, MESSAGE_FDS, NULL);
        if (got <= 0)
            return got ? (int)got : -ECONNRESET;
        at += (size_t)got;
    }
    return 0;
}

/* Memory only for what arrives, and as much again: the length is a peer's word. */
static int receive_frame(int socket, struct message_frame *frame, void **payload, int fds[MESSAGE_FDS])
{
    int error = receive_all(socket, frame, sizeof *frame, fds);
    if (error)
        return error;
    if (frame->zero)
        return -EBADMSG;
    if (frame->length > MESSAGE_MOST)
        return -EMSGSIZE;
    CLEANUP_FREE char *bytes = NULL;
    for (uint64_t at = 0, piece = PIECE_LEAST, left; at < frame->length || !bytes; at += left, piece = at) {
        left = frame->length - at < piece ? frame->length - at : piece;
        char *more = realloc(bytes, at + left + 1); /* for a NUL after a text */
        if (!more)
            return -ENOMEM;
        bytes = more;
        error = receive_all(socket, bytes + at, left, fds);
        if (error)
            return error;
    }
    bytes[frame->length] = '\0';
    *payload = steal_pointer(bytes);
    return 0;
}

int message_receive(int socket, uint32_t *kind, void **payload, size_t *n, int fds[MESSAGE_FDS])
{
    struct message_frame frame;
    int passed[MESSAGE_FDS];
    memset(passed, 0xff, sizeof passed);
    int error = receive_frame(socket, &frame, payload, passed);
    for (int i = 0; i < MESSAGE_FDS; i++)
        if ((error || !fds) && passed[i] >= 0)
            close(passed[i]);
    if (error)
        return error;
    if (fds)
        memcpy(fds, passed, sizeof passed);
    *kind = frame.kind;
    *n = frame.length;
    return 0;
}

/* --- contents --- */

int message_refusal(const void *payload, size_t n, struct str *why)
{
    uint32_t code;
    if (n < sizeof code)
        return str_fail(why, -EIO, "its server refused: %s", strerror(EIO));
    memcpy(&code, payload, sizeof code);
    const char *words = (const char *)payload + sizeof code;
    n = strnlen(words, n - sizeof code);
    if (n)
        str_add_printable(why, words, n);
    else
        str_addf(why, "its server refused: %s", strerror((int)code));
    return code && code < 4096 ? -(int)code : -EIO;
}

static bool is_text(const char *text, size_t room)
{
    return strnlen(text, room) < room;
}

int message_check_welcome(const void *payload, size_t n, struct message_welcome *to)
{
    struct message_welcome w = {.release = ""};
    memcpy(&w, payload, n < sizeof w ? n : sizeof w);
    *to = w;
    if (!is_text(w.release, sizeof w.release))
        return -EPROTO;
    if (n >= offsetof(struct message_welcome, release) + sizeof w.release && !version_matches(w.release, version_text))
        return -ESTALE;
    bool right = n == sizeof w && w.version == MESSAGE_VERSION && w.waiting <= 1 && w.extents <= UINT32_MAX &&
                 is_text(w.node.id, sizeof w.node.id) && is_text(w.node.host, sizeof w.node.host);
    return right ? 0 : -EPROTO;
}

/* --- the socket --- */

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

/* Only root and the owner may enter the state directory; the kernel reports which user the peer is. */
static int check_peer(int socket, uid_t other)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return -errno;
    return peer.uid == 0 || peer.uid == geteuid() || peer.uid == other ? 0 : -EPERM;
}

int message_connect(const char *state)
{
    CLEANUP_CLOSE int directory = open_state(state);
    if (directory < 0)
        return directory;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    struct sockaddr_un address = address_of(directory, "courier");
    int r;
    do /* -EAGAIN if a server listens but does not accept: the caller must not wait here */
        r = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (r < 0 && errno == EINTR);
    if (r < 0 || fcntl(fd, F_SETFL, 0) < 0)
        return -errno;
    /* root may form a world over other users' mounts (owner=USER) */
    struct stat st;
    bool root = geteuid() == 0 && fstat(directory, &st) == 0;
    int error = check_peer(fd, root ? st.st_uid : 0);
    return error ? error : steal_fd(fd);
}

int message_listen(const char *state)
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
    /* the mode of the unbound socket becomes that of its name */
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0 ||
        renameat(directory, "new-courier", directory, "courier") < 0) {
        int error = -errno;
        unlinkat(directory, "new-courier", 0);
        return error;
    }
    return steal_fd(fd);
}

int message_accept(int listening)
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
