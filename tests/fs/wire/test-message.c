/* Frames between courier and server: sent whole, with their descriptors, and refused when they lie. */
#include "fs/wire/message.h"

#include "tests/lib/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG = 100000 };

static int open_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void make_pair(int type, int pair[2])
{
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair))
        bail_out("socketpair: %s", strerror(errno));
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

static const int *with_null(int fds[MESSAGE_FDS])
{
    memset(fds, 0xff, MESSAGE_FDS * sizeof *fds);
    fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    return fds;
}

/* Each call that sends makes one packet: one for the head alone could reach the other end without the rest. */
static void test_packet(void)
{
    int pair[2];
    char text[1024], got[2048];
    memset(text, 'x', sizeof text);
    struct iovec part[] = {{text, 24}, {NULL, 0}, {text, 1000}};
    make_pair(SOCK_SEQPACKET, pair);
    message_send(pair[0], MESSAGE_OK, NULL, 0, NULL);
    is_int(recv(pair[1], got, sizeof got, MSG_DONTWAIT), sizeof(struct message_frame), "an empty frame is one packet");
    message_sendv(pair[0], MESSAGE_OK, part, 3, NULL);
    is_int(recv(pair[1], got, sizeof got, MSG_DONTWAIT), sizeof(struct message_frame) + sizeof text,
           "so is one of three parts");
    ok(memcmp(got + sizeof(struct message_frame), text, sizeof text) == 0, "with their bytes");
    close_pair(pair);
}

static void test_whole(size_t length)
{
    int pair[2], fds[MESSAGE_FDS], to[MESSAGE_FDS], before = open_descriptors();
    uint32_t kind;
    void *payload;
    size_t n;
    char *text = calloc(1, length + 1);
    if (!text)
        bail_out("no memory");
    memset(text, 'y', length);
    make_pair(SOCK_STREAM, pair);
    is_int(message_send(pair[0], MESSAGE_LIVE, text, length, with_null(fds)), 0, "%zu bytes are sent", length);
    is_int(message_receive(pair[1], &kind, &payload, &n, to), 0, "and received");
    ok(kind == MESSAGE_LIVE && n == length && strcmp(payload, text) == 0, "as they were, with a NUL behind them");
    ok(to[0] >= 0 && to[1] == -1 && write(to[0], "z", 1) == 1, "and with their descriptor");
    free(payload);
    close(to[0]);
    message_send(pair[0], MESSAGE_LIVE, text, length, fds);
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), 0, "received by one who wants no descriptors");
    free(payload);
    close(fds[0]);
    close_pair(pair);
    free(text);
    is_int(open_descriptors(), before, "they are closed");
}

static void test_lie(const struct message_frame *frame, size_t more, int expected, const char *what)
{
    int pair[2], fds[MESSAGE_FDS], to[MESSAGE_FDS], before = open_descriptors();
    uint32_t kind;
    void *payload = NULL;
    size_t n;
    struct {
        struct message_frame frame;
        char bytes[64];
    } sent = {.frame = *frame};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct iovec part = {&sent, sizeof sent.frame + more};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), with_null(fds), sizeof(int));
    make_pair(SOCK_STREAM, pair);
    if (sendmsg(pair[0], &message, 0) < 0)
        bail_out("sendmsg: %s", strerror(errno));
    close(pair[0]);
    close(fds[0]);
    is_int(message_receive(pair[1], &kind, &payload, &n, to), expected, "%s", what);
    close(pair[1]);
    ok(!payload && open_descriptors() == before, "nothing of it is kept");
}

int main(void)
{
    test_packet();
    test_whole(0);
    test_whole(10);
    test_whole(LONG);
    test_lie(&(struct message_frame){.kind = MESSAGE_OK, .zero = 1}, 0, -EBADMSG, "a head with a bit too many");
    test_lie(&(struct message_frame){.kind = MESSAGE_OK, .length = MESSAGE_MOST + 1}, 0, -EMSGSIZE, "too long a frame");
    test_lie(&(struct message_frame){.kind = MESSAGE_OK, .length = UINT64_MAX}, 0, -EMSGSIZE,
             "the longest that is said");
    test_lie(&(struct message_frame){.kind = MESSAGE_OK, .length = 64}, 63, -ECONNRESET,
             "the sender dies in the middle");
    return done_testing();
}
