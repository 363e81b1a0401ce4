/* The ring: messages arrive whole, in order, and nobody sleeps on a message; what the other side writes into the shared
 * memory leads nowhere outside. And the frames beside it, with descriptors. */
#include "fs/wire/message.h"
#include "fs/wire/ring.h"

#include "fs/base/cleanup.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NODES = 4, MESSAGES = 200000 };

static struct ring make(void)
{
    struct ring ring;
    if (ring_create(&ring, NODES))
        bail_out("ring_create");
    return ring;
}

/* The other side's view of it. */
static int open_other(const struct ring *ring, struct ring *other)
{
    int fd[RING_FDS];
    for (int i = 0; i < RING_FDS; i++)
        fd[i] = fcntl(ring->fd[i], F_DUPFD_CLOEXEC, 0);
    return ring_open(other, fd);
}

static void test_queue(void)
{
    struct ring ring = make();
    struct ring_queue *q = &ring.shared->to_server;
    struct ring_message m = {.kind = RING_SERVE}, got;
    is_int(ring_take(q, &got), -EAGAIN, "an empty queue has nothing");
    int pushed = 0;
    for (m.token = 0; ring_push(q, ring.fd[RING_BELL_SERVER], &m) == 0; m.token++)
        pushed++;
    is_int(pushed, RING_QUEUE, "so many fit");
    is_int(ring_push(q, ring.fd[RING_BELL_SERVER], &m), -EAGAIN, "a full queue refuses");
    bool right = true;
    for (uint64_t i = 0; i < RING_QUEUE; i++)
        right &= ring_take(q, &got) == 0 && got.token == i && got.kind == RING_SERVE;
    ok(right, "they come out as they went in");
    is_int(ring_take(q, &got), -EAGAIN, "and then no more");
    ring_close(&ring);
    ring_close(&ring);
    pass("closing twice is closing");
}

static void test_opening(void)
{
    struct ring ring, other;
    is_int(ring_create(&ring, 0), -EINVAL, "no nodes");
    is_int(ring_create(&ring, NODES_MOST + 1), -EINVAL, "too many nodes");
    ring = make();
    is_int(open_other(&ring, &other), 0, "the other side opens it");
    is_uint(other.nodes, NODES, "for as many nodes");
    memset(ring_slot(&ring, RING_IN + RING_OUT - 1), 7, RING_SLOT);
    is_int(((char *)ring_slot(&other, RING_IN + RING_OUT - 1))[RING_SLOT - 1], 7, "and sees its last byte");
    ok(!ring_slot(&other, RING_IN + RING_OUT), "there is no slot after it");
    ok(ftruncate(ring.fd[RING_MEMORY], 4096) < 0 && ftruncate(ring.fd[RING_MEMORY], 1 << 30) < 0,
       "its length is sealed");

    other.shared->nodes = 100000;
    is_uint(ring.nodes, NODES, "numbers in the shared memory are not looked at again");
    ok(ring_slot(&ring, 0) == (char *)ring.shared + ((char *)ring_slot(&other, 0) - (char *)other.shared),
       "nor do slots move");
    ring_close(&other);
    is_int(open_other(&ring, &other), -EBADMSG, "a ring that says it has more nodes than fit is refused");
    ring.shared->nodes = NODES;
    ring.shared->form++;
    is_int(open_other(&ring, &other), -EBADMSG, "so is one of another form");
    ring.shared->form--;
    int dumb[RING_FDS] = {dup(ring.fd[RING_MEMORY]), -1, dup(ring.fd[RING_BELL_COURIER])};
    is_int(ring_open(&other, dumb), -EBADMSG, "so is one without a bell");
    ring_close(&ring);

    int memory = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    is_int(ring_open(&other, (const int[RING_FDS]){memory, -1, -1}), -EBADMSG, "so is an empty one");
    ok(fcntl(memory, F_GETFD) < 0, "and its descriptor is closed");
    memory = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    (void)!ftruncate(memory, 8 << 20);
    is_int(ring_open(&other, (const int[RING_FDS]){memory, -1, -1}), -EBADMSG, "so is one that could shrink");
    is_int(ring_open(&other, (const int[RING_FDS]){-1, -1, -1}), -EBADF, "and what is not there");
}

static void test_lies(void)
{
    struct ring ring = make();
    struct ring_message m = {.kind = RING_FETCH};
    atomic_store(&ring.shared->to_courier.tail, 5000);
    is_int(ring_take(&ring.shared->to_courier, &m), -EBADMSG, "more in the queue than it can hold");
    atomic_store(&ring.shared->to_server.head, 1);
    is_int(ring_push(&ring.shared->to_server, ring.fd[RING_BELL_SERVER], &m), -EBADMSG, "more taken than was put");
    ring_close(&ring);
}

struct sleeper {
    struct ring *ring;
    uint64_t sum, next;
    bool ordered;
};

static void *take_all(void *argument)
{
    struct sleeper *s = argument;
    struct ring_queue *q = &s->ring->shared->to_courier;
    struct ring_message m;
    for (int taken = 0; taken < MESSAGES;) {
        if (ring_take(q, &m) == 0) {
            s->ordered &= m.token == s->next++;
            taken++;
        } else if (ring_may_sleep(q)) {
            struct pollfd fd = {.fd = s->ring->fd[RING_BELL_COURIER], .events = POLLIN};
            poll(&fd, 1, -1);
            eventfd_t rung;
            eventfd_read(fd.fd, &rung);
            ring_awake(q);
        }
    }
    return NULL;
}

/* A message left lying would leave both sides asleep, and the test's time limit would say so. */
static void test_bells(void)
{
    struct ring ring = make();
    struct sleeper s = {.ring = &ring, .ordered = true};
    pthread_t thread;
    pthread_create(&thread, NULL, take_all, &s);
    struct ring_message m = {.kind = RING_FETCH};
    for (m.token = 0; m.token < MESSAGES;) {
        if (ring_push(&ring.shared->to_courier, ring.fd[RING_BELL_COURIER], &m) == 0)
            m.token++;
        if (m.token % 1024 == 0)
            sched_yield();
    }
    pthread_join(thread, NULL);
    ok(s.ordered && s.next == MESSAGES, "%d messages to one that sleeps: each came, in order", MESSAGES);
    ring_close(&ring);
}

struct writer {
    struct node_news *news;
    atomic_bool stop;
};

static void *write_news(void *argument)
{
    struct writer *w = argument;
    for (uint64_t i = 1; !atomic_load(&w->stop); i++) {
        struct node_news mine = {.held = i, .capacity = i, .stage_bytes = i, .stage_total = i};
        news_write(w->news, &mine);
        sched_yield();
    }
    return NULL;
}

static void test_news(void)
{
    struct ring ring = make();
    struct writer w = {.news = ring_news(&ring, NODES - 1)};
    pthread_t thread;
    struct node_news got;
    ok(news_read(w.news, &got) && got.held == 0, "news of a node that said nothing yet");
    pthread_create(&thread, NULL, write_news, &w);
    int whole = 0, torn = 0;
    for (int i = 0; i < 20000; i++)
        if (news_read(w.news, &got)) {
            whole++;
            torn += got.held != got.capacity || got.held != got.stage_bytes || got.held != got.stage_total;
        }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    is_int(torn, 0, "no news is torn");
    ok(whole > 0, "and some were read: %d", whole);
    atomic_store(&w.news->version, 7);
    ok(!news_read(w.news, &got), "news whose writer died in the middle are none");
    news_write(w.news, &(struct node_news){.held = 5});
    ok(news_read(w.news, &got) && got.held == 5, "until the next writer");
    ring_close(&ring);
}

/* --- frames --- */

static void make_pair(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        bail_out("socketpair");
}

#define FDS_OF(ring) ((const int[MESSAGE_FDS]){(ring).fd[0], (ring).fd[1], (ring).fd[2], -1, -1})

static void test_frames(void)
{
    int pair[2], fds[MESSAGE_FDS];
    uint32_t kind;
    void *payload;
    size_t n;
    make_pair(pair);
    is_int(message_send(pair[0], MESSAGE_LIVE, NULL, 0, NULL), 0, "a frame without a payload");
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), 0, "arrives");
    ok(kind == MESSAGE_LIVE && n == 0, "as what it was");
    free(payload);

    struct ring ring = make();
    struct iovec parts[] = {{"abc", 3}, {"", 0}, {"defg", 4}};
    is_int(message_sendv(pair[0], MESSAGE_WORLD, parts, 3, FDS_OF(ring)), 0, "a frame of parts with descriptors");
    is_int(message_receive(pair[1], &kind, &payload, &n, fds), 0, "arrives");
    ok(kind == MESSAGE_WORLD && n == 7 && strcmp(payload, "abcdefg") == 0, "in one piece, and ends with a NUL");
    free(payload);
    struct ring other;
    is_int(ring_open(&other, fds), 0, "and the descriptors are the ring's");
    ok(fcntl(other.fd[RING_MEMORY], F_GETFD) & FD_CLOEXEC, "closed in children");
    ring_close(&other);
    ring_close(&ring);
    close(pair[0]);
    close(pair[1]);
}

static int lowest_descriptor(void)
{
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    close(fd);
    return fd;
}

static void test_descriptors(void)
{
    int pair[2], fds[MESSAGE_FDS];
    uint32_t kind;
    void *payload;
    size_t n;
    make_pair(pair);
    struct ring ring = make();
    is_int(message_send(pair[0], MESSAGE_LIVE, "x", 1, FDS_OF(ring)), 0, "descriptors where none are expected");
    int before = lowest_descriptor();
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), 0, "are taken");
    free(payload);
    is_int(lowest_descriptor(), before, "and closed");
    is_int(message_send(pair[0], MESSAGE_LIVE, "x", 1, NULL), 0, "no descriptors where some were expected");
    is_int(message_receive(pair[1], &kind, &payload, &n, fds), 0, "are none");
    ok(fds[0] == -1 && fds[2] == -1, "which can be seen");
    free(payload);
    ring_close(&ring);
    close(pair[0]);
    close(pair[1]);
}

static void test_bad_frames(void)
{
    int pair[2];
    uint32_t kind;
    void *payload;
    size_t n;
    make_pair(pair);
    struct message_frame bad = {.kind = MESSAGE_LIVE, .length = (uint64_t)MESSAGE_MOST + 1};
    (void)!write(pair[0], &bad, sizeof bad);
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), -EMSGSIZE, "a frame too long");
    bad = (struct message_frame){.kind = MESSAGE_LIVE, .zero = 1};
    (void)!write(pair[0], &bad, sizeof bad);
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), -EBADMSG, "a frame that is none");
    bad = (struct message_frame){.kind = MESSAGE_LIVE, .length = 100};
    (void)!write(pair[0], &bad, sizeof bad);
    close(pair[0]);
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), -ECONNRESET, "a frame cut off");
    is_int(message_send(pair[1], MESSAGE_LIVE, "x", 1, NULL), -ECONNRESET, "nobody hears");
    close(pair[1]);
    make_pair(pair);
    bad.length = UINT64_C(512) << 20;
    (void)!write(pair[0], &bad, sizeof bad);
    close(pair[0]);
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), -ECONNRESET, "half a GiB on a peer's word");
    close(pair[1]);
    struct message_welcome to, welcome = {.version = MESSAGE_VERSION, .extents = 1000, .release = DEALFS_VERSION};
    is_int(message_check_welcome(&welcome, sizeof welcome, &to), 0, "a welcome");
    welcome.extents = UINT64_MAX;
    is_int(message_check_welcome(&welcome, sizeof welcome, &to), -EPROTO, "one of more extents than there can be");
}

struct sender {
    int socket;
    char *bytes;
    size_t n;
};

static void *send_parts(void *argument)
{
    struct sender *s = argument;
    enum { PARTS = 3000 };
    static struct iovec part[PARTS];
    size_t each = s->n / PARTS;
    for (size_t i = 0; i < PARTS; i++)
        part[i] = (struct iovec){s->bytes + i * each, i + 1 < PARTS ? each : s->n - i * each};
    is_int(message_sendv(s->socket, MESSAGE_HOLDINGS, part, PARTS, NULL), 0, "a long frame of many parts");
    return NULL;
}

static void test_long_frame(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        bail_out("socketpair");
    struct sender s = {pair[0], malloc(5 << 20), 5 << 20};
    for (size_t i = 0; i < s.n; i++)
        s.bytes[i] = (char)(i * 31 >> 5);
    pthread_t thread;
    pthread_create(&thread, NULL, send_parts, &s);
    uint32_t kind;
    void *payload = NULL;
    size_t n;
    is_int(message_receive(pair[1], &kind, &payload, &n, NULL), 0, "is received");
    pthread_join(thread, NULL);
    ok(n == s.n && memcmp(payload, s.bytes, n) == 0, "as it was sent");
    free(payload);
    free(s.bytes);
    close(pair[0]);
    close(pair[1]);
}

static void test_socket(void)
{
    char state[4096];
    snprintf(state, sizeof state, "%s/%0150d", test_directory(), 1); /* longer than a socket's address may be */
    mkdir(state, 0700);
    is_int(message_connect(state), -ENOENT, "no server");
    is_int(message_listen("/nonexistent"), -ENOENT, "no directory");
    int first = message_listen(state);
    ok(first >= 0, "listen in a directory with a long name");
    char path[5000];
    snprintf(path, sizeof path, "%s/courier", state);
    struct stat st;
    ok(stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600, "for its user only");
    int second = message_listen(state);
    ok(second >= 0, "the next server listens in its place");
    int client = message_connect(state);
    int server = message_accept(second);
    ok(client >= 0 && server >= 0, "and is the one that is found");
    is_int(message_send(client, MESSAGE_HELLO, "hello", 5, NULL), 0, "a frame");
    uint32_t kind;
    void *payload;
    size_t n;
    is_int(message_receive(server, &kind, &payload, &n, NULL), 0, "gets there");
    free(payload);
    close(client);
    close(server);
    close(first);
    close(second);
    is_int(message_connect(state), -ECONNREFUSED, "a server that is gone");
}

/* Somebody else's courier, to whom the socket's own mode was opened. */
static void test_strangers(void)
{
    if (geteuid() != 0) {
        skip(1, "only root can be somebody else");
        return;
    }
    const char *state = test_path("open");
    mkdir(state, 0755);
    chmod(test_directory(), 0755);
    int listening = message_listen(state);
    fchmodat(AT_FDCWD, test_path("open/courier"), 0666, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(setuid(65534) < 0 || message_connect(state) < 0);
    int status;
    waitpid(child, &status, 0);
    if (status)
        skip(1, "the directory cannot be reached by others");
    else
        is_int(message_accept(listening), -EPERM, "a courier of another user is sent away");
    close(listening);
}

int main(void)
{
    test_queue();
    test_opening();
    test_lies();
    test_bells();
    test_news();
    test_frames();
    test_descriptors();
    test_bad_frames();
    test_long_frame();
    test_socket();
    test_strangers();
    return done_testing();
}
