/* A session at one end of a socket pair; the test plays the kernel at the other, and kills servers. */
#include "fs/fuse/session.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/wire/handover.h"
#include "tests/lib/tap.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { COUNT = 64, ROOM = 8192 };

static struct lane *lane;
static struct pulse *pulse;
static int kernel, device; /* the two ends */
static bool pause_in_init, strict, killed;

/* --- the server --- */

/* GETATTR of inode N answers with size N; of 13 it dies; of 50 and more it is answered by another thread; 99 waits
 * for ever, 98 in its thread. */
static void *answer_later(void *arg)
{
    fuse_reply_err(arg, ESTALE);
    return NULL;
}

static void op_init(void *user, struct fuse_conn_info *conn)
{
    (void)user;
    conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
    while (pause_in_init)
        pause();
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    struct stat st = {.st_ino = ino, .st_size = (off_t)ino, .st_mode = S_IFREG | 0444};
    if (ino == 13)
        _exit(13);
    if (ino == 99)
        return;
    while (ino == 98)
        pause();
    if (ino >= 50) {
        pthread_t other;
        pthread_create(&other, NULL, answer_later, req);
        pthread_detach(other);
        return;
    }
    fuse_reply_attr(req, &st, 1);
}

/* The server dies of byte 13 of inode 30. */
static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    if (ino == 30 && offset <= 13 && offset + (off_t)size > 13)
        _exit(13);
    fuse_reply_buf(req, "0123456789", size < 10 ? size : 10);
}

static const struct fuse_lowlevel_ops ops = {.init = op_init, .getattr = op_getattr, .read = op_read};

static void ended(void *user, int error)
{
    atomic_store((atomic_int *)user, error ? error : 1);
}

static pid_t start_server(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    static atomic_int over;
    struct session *s;
    close(kernel);
    struct session_config config = {.name = "data",
                                    .fd = device,
                                    .lane = lane,
                                    .threads = 4,
                                    .pulse = pulse,
                                    .strict_reads = strict,
                                    .killed = killed,
                                    .ops = &ops,
                                    .ended = ended,
                                    .ended_user = &over};
    if (session_create(&config, &s) || session_start(s))
        _exit(70);
    while (!atomic_load(&over))
        usleep(1000);
    session_destroy(s);
    exit(atomic_load(&over) == 1 ? 0 : 71);
}

static int kill_server(pid_t server)
{
    int status = 0;
    kill(server, SIGKILL);
    waitpid(server, &status, 0);
    return status;
}

static void fresh(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        bail_out("socketpair");
    kernel = pair[0];
    device = pair[1];
    lane = mmap(NULL, lane_size(COUNT, ROOM), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pulse = mmap(NULL, sizeof *pulse, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lane == MAP_FAILED || pulse == MAP_FAILED)
        bail_out("mmap");
    lane_init(lane, COUNT, ROOM);
    pause_in_init = false;
}

static void drop(void)
{
    close(kernel);
    close(device);
    munmap(lane, lane_size(COUNT, ROOM));
    munmap(pulse, sizeof *pulse);
}

/* --- the kernel --- */

static uint32_t asker; /* of the requests that follow */

static void ask(uint32_t opcode, uint64_t unique, uint64_t ino, const void *body, size_t n)
{
    unsigned char message[512];
    struct fuse_in_header in = {
        .len = (uint32_t)(sizeof in + n), .opcode = opcode, .unique = unique, .nodeid = ino, .pid = asker};
    memcpy(message, &in, sizeof in);
    if (n)
        memcpy(message + sizeof in, body, n);
    if (write(kernel, message, in.len) != (ssize_t)in.len)
        bail_out("write a request");
}

static void ask_init(void)
{
    struct fuse_init_in in = {.major = 7,
                              .minor = 38,
                              .max_readahead = 131072,
                              .flags = FUSE_ASYNC_READ | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS | FUSE_AUTO_INVAL_DATA};
    ask(FUSE_INIT, 2, 0, &in, sizeof in);
}

static void ask_attr(uint64_t unique, uint64_t ino)
{
    struct fuse_getattr_in in = {0};
    ask(FUSE_GETATTR, unique, ino, &in, sizeof in);
}

struct reply {
    struct fuse_out_header header;
    unsigned char body[512];
};

static bool has_reply(int milliseconds)
{
    return poll(&(struct pollfd){.fd = kernel, .events = POLLIN}, 1, milliseconds) == 1;
}

static struct reply get_reply(void)
{
    struct reply r;
    memset(&r, 0, sizeof r);
    if (has_reply(test_patience()) && read(kernel, &r, sizeof r) < (ssize_t)sizeof r.header)
        r.header.unique = 0;
    return r;
}

static uint64_t attr_size(const struct reply *r)
{
    struct fuse_attr_out out;
    memcpy(&out, r->body, sizeof out);
    return out.attr.size;
}

/* --- tests --- */

static pid_t started(void)
{
    fresh();
    pid_t server = start_server();
    ask_init();
    struct reply r = get_reply();
    if (r.header.unique != 2 || r.header.error)
        bail_out("INIT was not answered");
    return server;
}

static void test_init(void)
{
    fresh();
    pid_t server = start_server();
    ask_init();
    struct reply r = get_reply();
    struct fuse_init_out out;
    memcpy(&out, r.body, sizeof out);
    is_uint(r.header.unique, 2, "INIT is answered");
    is_int(r.header.error, 0, "well");
    is_uint(out.max_write, ROOM - SLOT_HEADROOM, "writes fit the slots");
    is_uint(out.max_pages, (1u << 20) / (unsigned)sysconf(_SC_PAGESIZE), "READs are 1 MiB all the same");
    ok(out.flags & FUSE_PARALLEL_DIROPS, "lookups are parallel");
    ok(!(out.flags & FUSE_AUTO_INVAL_DATA), "what the operations decline is declined");
    ask_attr(4, 7);
    r = get_reply();
    ok(r.header.unique == 4 && attr_size(&r) == 7, "requests are served");
    kill_server(server);

    server = start_server();
    ask_attr(6, 8);
    do
        r = get_reply();
    while (r.header.unique == 4); /* again, when the first died between its reply and the freeing of the slot */
    ok(r.header.unique == 6 && attr_size(&r) == 8, "by the next server too, and INIT is not answered twice");
    kill_server(server);
    drop();
}

static void test_init_again(void)
{
    fresh();
    pause_in_init = true;
    pid_t server = start_server();
    ask_init();
    while (atomic_load(&lane->init.state) != INIT_READ)
        usleep(1000);
    kill_server(server);
    pause_in_init = false;
    server = start_server();
    struct reply r = get_reply();
    ok(r.header.unique == 2 && !r.header.error,
       "an INIT that was read and not answered is answered by the next server");
    ask_attr(8, 9);
    r = get_reply();
    is_uint(attr_size(&r), 9, "which serves");
    kill_server(server);
    drop();
}

static void test_no_reply(void)
{
    pid_t server = started();
    struct fuse_forget_in forget = {1};
    for (uint64_t i = 0; i < 3 * COUNT; i++)
        ask(FUSE_FORGET, 100 + 2 * i, 5, &forget, sizeof forget);
    struct fuse_batch_forget_in batch = {0};
    ask(FUSE_BATCH_FORGET, 1000, 0, &batch, sizeof batch);
    ask_attr(2000, 3);
    struct reply r = get_reply();
    is_uint(r.header.unique, 2000, "FORGETs get no reply, and cost no slot");
    ask_attr(2002, 61);
    r = get_reply();
    ok(r.header.unique == 2002 && r.header.error == -ESTALE, "another thread may answer");
    ask(4000, 2004, 1, NULL, 0);
    r = get_reply();
    ok(r.header.unique == 2004 && r.header.error == -ENOSYS, "an unknown request is refused");
    kill_server(server);
    drop();
}

enum { ROUNDS = 40, BATCH = 20 };

static uint64_t inode_of(uint64_t request)
{
    return request % 12;
}

/* Takes replies until `most` requests have one; false when no more come. A reply that a server had written when it
 * died, and not yet noted, comes again from the next one: the true kernel refuses it, here it is left out. */
static bool take_replies(bool answered[ROUNDS * BATCH], int *count, int most, int *wrong)
{
    while (*count < most) {
        struct reply r = get_reply();
        if (r.header.unique == 0)
            return false;
        uint64_t request = (r.header.unique - 10) / 2;
        if (r.header.unique < 10 || answered[request])
            continue;
        *wrong += r.header.error != 0 || attr_size(&r) != inode_of(request);
        ++*count;
        answered[request] = true;
    }
    return true;
}

static void test_kills(void)
{
    pid_t server = started();
    static bool answered[ROUNDS * BATCH];
    int asked = 0, count = 0, wrong = 0;
    bool all = true;
    for (int round = 0; round < ROUNDS && all; round++) {
        for (int i = 0; i < BATCH; i++, asked++)
            ask_attr(10 + 2 * (uint64_t)asked, inode_of((uint64_t)asked));
        all = take_replies(answered, &count, asked - BATCH + round % BATCH, &wrong);
        kill_server(server);
        server = start_server();
        all = all && take_replies(answered, &count, asked, &wrong);
    }
    ok(all, "%d kills: every request was answered", ROUNDS);
    is_int(wrong, 0, "rightly");
    kill_server(server);
    drop();
}

static int parked(void)
{
    int count = 0;
    for (int i = 0; i < COUNT; i++)
        count += (atomic_load(&lane_slot(lane, i)->word) & 255) == SLOT_PARKED;
    return count;
}

enum { DEATHS = BLAME_MOST / BLAME_DIED, KILLS = BLAME_MOST / BLAME_KILLED };

/* Number of servers that die before the reply; at most 2 * KILLS. */
static int count_deaths(pid_t *server)
{
    int deaths = 0;
    while (deaths < 2 * KILLS && !has_reply(1)) {
        if (waitpid(*server, NULL, WNOHANG) == 0)
            continue;
        deaths++;
        *server = start_server();
    }
    return deaths;
}

static void test_poison(void)
{
    pid_t server = started();
    ask_attr(20, 99); /* it waits through all that follows */
    while (parked() == 0)
        usleep(1000);
    ask_attr(22, 13);
    int deaths = count_deaths(&server);
    struct reply r = get_reply();
    ok(r.header.unique == 22 && r.header.error == -EIO, "a request that kills is answered with EIO");
    is_int(deaths, killed ? KILLS : DEATHS, "after %d servers", deaths);
    ask_attr(24, 5);
    r = get_reply();
    ok(r.header.unique == 24 && attr_size(&r) == 5, "the others are served");
    while (parked() == 0)
        usleep(1000);
    pass("one that waited is innocent, and waits again");
    kill_server(server);
    drop();
}

static void ask_read(uint64_t unique, uint64_t ino, uint64_t offset, uint32_t size)
{
    struct fuse_read_in in = {.offset = offset, .size = size};
    ask(FUSE_READ, unique, ino, &in, sizeof in);
}

/* A killed server may have sent a reply that the next one sends again. */
static struct reply get_reply_to(uint64_t unique)
{
    struct reply r = get_reply();
    while (r.header.unique != 0 && r.header.unique != unique)
        r = get_reply();
    return r;
}

/* READs that are repeated after the EIO of one that ended servers. */
static void test_barred(bool of_files)
{
    strict = of_files;
    pid_t server = started();
    ask_read(20, 30, 0, 100);
    is_int(count_deaths(&server), strict ? 2 : DEATHS, "%s: a READ ends servers",
           strict ? "the control mount" : "the data mount");
    is_int(get_reply_to(20).header.error, -EIO, "then it fails");
    static const struct {
        uint64_t ino, offset;
        int error[2]; /* data, control */
        const char *what;
    } again[] = {
        {30, 0, {-EIO, -EIO}, "the same"},
        {30, 10, {-EIO, -EIO}, "one that overlaps it"},
        {30, 100, {0, -EIO}, "other bytes of this file"},
        {31, 0, {0, 0}, "another file"},
    };
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        ask_read(22 + 2 * i, again[i].ino, again[i].offset, 50);
        is_int(count_deaths(&server), 0, "%s: no server ends", again[i].what);
        is_int(get_reply_to(22 + 2 * i).header.error, again[i].error[strict], "its reply");
    }
    kill_server(server);
    server = start_server();
    ask_read(40, 30, 0, 100);
    is_int(get_reply_to(40).header.error, -EIO, "the next server knows of it");
    is_int(waitpid(server, NULL, WNOHANG), 0, "and lives");
    kill_server(server);
    drop();
    strict = false;
}

/* Until the watch has begun and ended a look. */
static void await_look(void)
{
    for (int i = 0; i < 2; i++) {
        atomic_store(&pulse->oldest, 0);
        while (atomic_load(&pulse->oldest) == 0)
            usleep(1000);
    }
}

static void interrupt(uint64_t unique)
{
    struct fuse_interrupt_in in = {.unique = unique};
    ask(FUSE_INTERRUPT, unique + 1, 0, &in, sizeof in);
}

static int slot_of(uint64_t unique)
{
    for (int i = 0; i < COUNT; i++)
        if ((atomic_load(&lane_slot(lane, i)->word) & 255) != SLOT_FREE && lane_request(lane, i)->unique == unique)
            return i;
    return SLOT_NONE;
}

static void await_state(uint64_t unique, enum slot_state state)
{
    for (int i; (i = slot_of(unique)) == SLOT_NONE || (atomic_load(&lane_slot(lane, i)->word) & 255) != state;)
        usleep(1000);
}

/* Who asks is dying, though no INTERRUPT tells so; one that only gets signals waits on. */
static void test_deaths(void)
{
    pid_t dying = fork();
    if (dying == 0)
        for (;;)
            pause();
    pid_t server = started();
    asker = (uint32_t)getpid();
    ask_attr(40, 99);
    await_state(40, SLOT_PARKED); /* an earlier INTERRUPT would be asked for again */
    interrupt(40);
    asker = (uint32_t)dying;
    ask_attr(42, 99);
    await_state(42, SLOT_PARKED);
    await_look();
    ok(!has_reply(0), "who waits and is alive waits on, also when it got a signal");
    kill(dying, SIGKILL); /* pending until somebody waits for it */
    struct reply r = get_reply();
    ok(r.header.unique == 42 && r.header.error == -EINTR, "who is killed is let go, without an INTERRUPT");
    await_look();
    ok(!has_reply(0), "the other is not");
    kill_server(server);
    server = start_server();
    asker = (uint32_t)getpid();
    ask_attr(44, 3);
    is_uint(get_reply().header.unique, 44, "the next server does not answer it again");
    kill_server(server);
    waitpid(dying, NULL, 0);
    asker = 0;
    drop();
}

/* An asker of another pid namespace: only the INTERRUPT tells of it, and the kernel sends no second one. */
static void test_unseen(void)
{
    pid_t server = started();
    interrupt(50);
    struct reply r = get_reply();
    ok(r.header.unique == 51 && r.header.error == -EAGAIN, "an INTERRUPT that came too early is asked for again");
    ask_attr(50, 99);
    await_state(50, SLOT_PARKED);
    interrupt(50);
    while (!atomic_load(&lane_slot(lane, slot_of(50))->interrupted) || slot_of(51) != SLOT_NONE)
        usleep(1000); /* else the next server sees the INTERRUPT, too */
    kill_server(server);
    server = start_server();
    await_state(50, SLOT_PARKED);
    struct slot *slot = lane_slot(lane, slot_of(50));
    uint64_t since = clock_now();
    atomic_store(&slot->since, since);
    await_look();
    ok(!has_reply(0) || clock_now() - since > 4 * SECOND, "it is not let go at once: it may be alive");
    atomic_store(&slot->since, 1);
    r = get_reply();
    ok(r.header.unique == 50 && r.header.error == -EINTR, "but after a while, also by the next server");
    kill_server(server);
    drop();
}

/* Readers that are all with one request do not beat. */
static void test_beats(void)
{
    pid_t server = started();
    uint64_t beats = atomic_load(&pulse->beats);
    while (atomic_load(&pulse->beats) < beats + 2)
        usleep(1000);
    is_uint(atomic_load(&pulse->oldest), 0, "nothing waits");
    ask_attr(60, 99);
    while (atomic_load(&pulse->oldest) == 0)
        usleep(1000);
    beats = atomic_load(&pulse->beats);
    while (atomic_load(&pulse->beats) < beats + 2)
        usleep(1000);
    pass("a request that waits is seen, and is no reason to worry");
    for (uint64_t i = 0; i < 4; i++)
        ask_attr(62 + 2 * i, 98);
    for (uint64_t i = 0; i < 4; i++)
        await_state(62 + 2 * i, SLOT_RUNNING);
    do { /* the first looks may still count a beat */
        beats = atomic_load(&pulse->beats);
        await_look();
    } while (atomic_load(&pulse->beats) != beats);
    pass("no reader comes back: that is seen, too");
    kill_server(server);
    drop();
}

/* A server that died with a thread in mid-read, which the kernel completes when the next one serves already. */
static void test_late(void)
{
    fresh();
    enum { LATE = 7 };
    atomic_store(&lane_slot(lane, LATE)->reader, (uint32_t)getpid()); /* the test is that server, and lingers */
    atomic_store(&lane_slot(lane, LATE)->word, SLOT_READING);
    pid_t server = start_server();
    ask_init();
    get_reply();
    ask_attr(30, 4);
    is_uint(get_reply().header.unique, 30, "serving while one before still reads");
    struct fuse_in_header *slot = lane_request(lane, LATE);
    slot->opcode = FUSE_GETATTR;
    slot->nodeid = 6;
    slot->unique = 32;
    atomic_thread_fence(memory_order_release);
    slot->len = sizeof *slot + sizeof(struct fuse_getattr_in);
    struct reply r = get_reply();
    ok(r.header.unique == 32 && attr_size(&r) == 6, "what that reads at last is answered");
    kill_server(server);
    drop();
}

static void test_end(void)
{
    pid_t server = started();
    int status = 0;
    close(kernel);
    kernel = -1;
    waitpid(server, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the end of the connection ends the session");
    drop();

    struct session *s;
    struct session_config config = {.name = "data", .fd = -1, .threads = 1, .ops = &ops};
    is_int(session_create(&config, &s), -EINVAL, "no descriptor");
    fresh();
    config = (struct session_config){.name = "data", .fd = device, .lane = lane, .threads = 3, .ops = &ops};
    is_int(session_create(&config, &s), 0, "a session");
    is_int(session_start(s), 0, "starts");
    session_stop(s);
    pass("and stops while its threads wait in the kernel");
    session_destroy(s);
    session_destroy(NULL);
    device = -1;
    drop();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_init();
    test_init_again();
    test_no_reply();
    test_kills();
    test_poison();
    killed = true; /* from outside, as far as the servers know */
    test_poison();
    killed = false;
    test_barred(false);
    test_barred(true);
    test_deaths();
    test_unseen();
    test_beats();
    test_late();
    test_end();
    return done_testing();
}
