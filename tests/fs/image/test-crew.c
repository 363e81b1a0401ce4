/* Pictures made smaller in processes of their own, some of which die. This program is also such a process. */
#include "fs/base/cleanup.h"
#include "fs/base/thread.h"
#include "fs/image/crew-inside.h"
#include "fs/image/crew.h"
#include "fs/image/frame.h"
#include "tests/fs/image/photo.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { THREADS = 4, ROUNDS = 20 };

#ifdef DEALFS_CHECKS /* see confine.h */
static const bool is_checked = true;
#else
static const bool is_checked = false;
#endif

static const struct image_shrinking wanted = {.side = 100, .quality = 90};
static struct crew *crew;
static struct str large, small, deadly, expected;
static atomic_int wrong;

static void *ask_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        CLEANUP_STR struct str out = STR_INIT;
        struct image_reason reason;
        if (i % 5 == 3) {
            wrong += crew_shrink(crew, deadly.data, deadly.length, &wanted, &out, &reason) != IMAGE_CRASHED;
            wrong += out.length != 0;
            continue;
        }
        wrong += crew_shrink(crew, large.data, large.length, &wanted, &out, &reason) != IMAGE_FINE;
        wrong += out.length != expected.length || memcmp(out.data, expected.data, out.length) != 0;
    }
    return NULL;
}

static void *ask_deadly(void *unused)
{
    CLEANUP_STR struct str out = STR_INIT;
    (void)unused;
    crew_shrink(crew, deadly.data, deadly.length, &wanted, &out, NULL);
    return NULL;
}

/* Asks for what hangs, on a thread that takes no signals. Its process has our stderr, and says so there. */
static int hang(const char *self)
{
    pthread_t thread;
    photo_make(&(struct photo){.width = 401, .height = 300}, &deadly);
    if (crew_create(self, &crew) || thread_create(&thread, "asker", ask_deadly, NULL))
        return 1;
    pthread_join(thread, NULL);
    return 1;
}

/* The other end of the pipe is closed when both are gone. */
static void test_orphan(const char *self)
{
    char fault[64], said;
    int ends[2], status;
    snprintf(fault, sizeof fault, "hang=%zu", deadly.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    if (pipe2(ends, O_CLOEXEC) < 0)
        bail_out("no pipe");
    pid_t pid = fork();
    if (pid == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO)
        execl(self, self, "--hang", self, (char *)NULL);
    if (pid == 0)
        _exit(1);
    close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    ok(poll(&ready, 1, test_patience()) == 1 && read(ends[0], &said, 1) == 1, "one that hangs");
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ssize_t n = 1;
    while (n == 1 && poll(&ready, 1, test_patience()) == 1)
        n = read(ends[0], &said, 1);
    is_int(n, 0, "ends when who asked is killed");
    close(ends[0]);
}

/* Answers that all is fine, and then writes into what it was shown for as long as it lives. */
static int scribble(void)
{
    static const struct crew_answer answer = {.verdict = IMAGE_FINE};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct crew_question question;
    struct iovec iov = {&question, sizeof question};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd;
    if (recvmsg(STDIN_FILENO, &message, 0) != sizeof question || !CMSG_FIRSTHDR(&message))
        return 1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    char *slot = mmap(NULL, question.decoding.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (slot == MAP_FAILED || send(STDIN_FILENO, &answer, sizeof answer, MSG_NOSIGNAL) < 0)
        return 1;
    for (int byte = 1;; byte = byte % 255 + 1) { /* says so once all of it has been written again */
        memset(slot, byte, question.decoding.mapped);
        if (write(STDERR_FILENO, "x", 1) != 1)
            return 1;
    }
}

/* Does what a process could do that a file has taken over. */
static int lie(const char *how)
{
    enum { DRIP_US = 20000 };
    const struct crew_answer answer[] = {{.verdict = IMAGE_SMALL, .reason = {"first"}},
                                         {.verdict = IMAGE_SMALL, .reason = {"second"}}};
    struct pollfd asked = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&asked, 1, -1) != 1)
        return 1;
    if (strcmp(how, "scribble") == 0)
        return scribble();
    if (strcmp(how, "twice") == 0 && send(STDIN_FILENO, answer, sizeof answer, MSG_NOSIGNAL) < 0)
        return 1;
    while (strcmp(how, "drip") == 0 && send(STDIN_FILENO, answer, 1, MSG_NOSIGNAL) == 1)
        usleep(DRIP_US);
    return pause();
}

/* What was decoded is out of its reach: it has written into all that it has, and that has changed nothing. */
static void test_scribbler(const char *self)
{
    enum { SIDE = 8, TIMES = 3 };
    const struct crew_decoding eight = {.decoded = {.width = SIDE, .height = SIDE, .channels = 3},
                                        .shown = {.width = SIDE, .height = SIDE, .channels = 3}};
    uint8_t pixels[SIDE * SIDE * 3], before[sizeof pixels];
    int ends[2], saved = dup(STDERR_FILENO);
    char said;
    if (pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
        bail_out("no pipe");
    setenv("TEST_CREW_LIES", "scribble", 1);
    crew_create(self, &crew);
    is_int(crew_decode(crew, &(struct crew_file){small.data, small.length, {0}}, &eight, pixels, NULL), IMAGE_FINE,
           "a process that writes where it may, after its answer");
    memcpy(before, pixels, sizeof before);
    for (int i = 0; i < TIMES; i++)
        if (read(ends[0], &said, 1) != 1)
            bail_out("it does not write");
    ok(memcmp(before, pixels, sizeof before) == 0, "does not reach the picture that it has made");
    crew_destroy(crew);
    unsetenv("TEST_CREW_LIES");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);
}

static void test_lies(const char *self)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct image_reason reason;
    test_scribbler(self);

    setenv("TEST_CREW_LIES", "drip", 1);
    setenv("DEALFS_IMAGE_PATIENCE", "1", 1);
    crew_create(self, &crew);
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason), IMAGE_CRASHED, "one byte at a time");
    is_str(reason.text, "the process that worked on it hung", "is not waited for for ever");
    unsetenv("DEALFS_IMAGE_PATIENCE");
    crew_destroy(crew);
    setenv("TEST_CREW_LIES", "twice", 1);
    crew_create(self, &crew);
    for (int i = 0; i < 2; i++) {
        crew_shrink(crew, small.data, small.length, &wanted, &out, &reason);
        is_str(reason.text, "first", "what was said before the question is no answer to it");
    }
    unsetenv("TEST_CREW_LIES");
    crew_destroy(crew);
}

/* The one process that we have; 0: none is to be found. */
static int find_worker(void)
{
    CLEANUP_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    return fd < 0 || read(fd, text, sizeof text - 1) < 0 ? 0 : atoi(text);
}

static bool worker_has(int pid, const char *name, const char *line)
{
    CLEANUP_FREE char *text = calloc(1, 16384);
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0; n += got > 0 ? (size_t)got : 0)
        got = read(fd, text + n, 16383 - n);
    return strstr(text, line) != NULL;
}

/* What a file that takes its process over could still do. */
static void test_rights(const char *self)
{
    CLEANUP_STR struct str out = STR_INIT;
    char path[64];
    struct stat status;
    if (crew_create(self, &crew) < 0)
        bail_out("no crew");
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, NULL), IMAGE_FINE, "made without rights");
    int pid = find_worker();
    if (pid == 0) {
        skip(10, "this kernel names no children");
    } else {
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        ok(worker_has(pid, "status", "NoNewPrivs:\t1"), "a worker wins no rights");
        ok(worker_has(pid, "limits", "Max core file size        0                    0"), "leaves no core");
        ok(stat(path, &status) == 0 && status.st_uid == 0, "shows itself to nobody");
        ok(getsid(pid) == pid, "has no terminal");
        ok(worker_has(pid, "status", "CapEff:\t0000000000000000"), "cannot do what root can");
        ok(worker_has(pid, "status", "CapPrm:\t0000000000000000"), "nor allow it itself");
        ok(geteuid() != 0 || worker_has(pid, "status", "CapBnd:\t0000000000000000"), "nor get it from a program");
        ok(geteuid() != 0 || worker_has(pid, "status", "Uid:\t65534\t65534\t65534\t65534"), "is not root");
        ok(geteuid() != 0 || worker_has(pid, "status", "Groups:\t \n"), "is in no group");
        ok(is_checked || worker_has(pid, "status", "Seccomp:\t2"), "and makes few system calls");
    }
    crew_destroy(crew);
}

/* Each costs its picture, and no other. */
static void test_calls(const char *self)
{
    static const char *const calls[] = {"open", "socket", "execve", "kill", "code"};
    const struct crew_decoding whole = {.wish = {.channels = 3},
                                        .decoded = {.width = 401, .height = 300, .channels = 3},
                                        .shown = {.width = 401, .height = 300, .channels = 3}};
    CLEANUP_FREE uint8_t *pixels = malloc(image_pixels_size(&whole.shown));
    char fault[64];
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        CLEANUP_STR struct str out = STR_INIT;
        struct image_reason reason;
        snprintf(fault, sizeof fault, "%s=%zu", calls[i], deadly.length);
        setenv("DEALFS_IMAGE_FAULT", fault, 1);
        crew_create(self, &crew);
        is_int(crew_shrink(crew, deadly.data, deadly.length, &wanted, &out, &reason), IMAGE_CRASHED,
               "a process that calls %s dies", calls[i]);
        is_str(reason.text, "the process that worked on it has died", "and says so");
        is_int(crew_decode(crew, &(struct crew_file){deadly.data, deadly.length, {0}}, &whole, pixels, NULL),
               IMAGE_CRASHED, "also one that decodes");
        is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, NULL), IMAGE_FINE,
               "the next picture is made");
        crew_destroy(crew);
    }
    unsetenv("DEALFS_IMAGE_FAULT");
}

/* A kernel, or a container, that filters no calls. */
static int refuse_filters(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int ask_without_filters(const char *self)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct image_reason reason;
    if (refuse_filters() < 0 || crew_create(self, &crew) < 0)
        return 1;
    enum image_verdict verdict = crew_shrink(crew, large.data, large.length, &wanted, &out, &reason);
    crew_destroy(crew);
    return verdict == IMAGE_CRASHED && strstr(reason.text, "so it decodes nothing: filter system calls") ? 0 : 2;
}

static void test_no_filters(const char *self)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask_without_filters(self));
    waitpid(pid, &status, 0);
    is_int(status, 0, "where calls cannot be filtered nothing is decoded, and the reason says why");
}

/* Decodes there, and here: the same? */
static bool decode_same(const struct str *file, uint32_t side)
{
    const struct crew_care nobody = {0};
    struct crew_decoding d = {.wish = {.channels = 3, .side = 2 * side}};
    struct image_info info;
    if (crew_probe(crew, &(struct crew_file){file->data, file->length, nobody}, &info, NULL) != IMAGE_FINE)
        return false;
    d.decoded = d.shown = image_decoded(&info, &d.wish);
    bool smaller = side && image_fit(side, &d.shown.width, &d.shown.height);
    struct image_pixels decoded = d.decoded, shown = d.shown;
    size_t size = image_pixels_size(&shown);
    CLEANUP_FREE uint8_t *here = decoded.data = malloc(image_pixels_size(&decoded));
    CLEANUP_FREE uint8_t *resized = shown.data = malloc(size);
    CLEANUP_FREE uint8_t *there = malloc(size + 1);
    if (!here || !resized || !there)
        return false;
    there[size] = 'x';
    if (image_decode(file->data, file->length, &d.wish, &decoded, NULL) != IMAGE_FINE ||
        (smaller && !image_resize(&decoded, &shown)) ||
        crew_decode(crew, &(struct crew_file){file->data, file->length, nobody}, &d, there, NULL) != IMAGE_FINE)
        return false;
    return memcmp(there, smaller ? resized : here, size) == 0 && there[size] == 'x';
}

static void *decode_often(void *file)
{
    for (int i = 0; i < ROUNDS; i++)
        wrong += !decode_same(file, i % 3 ? 0 : 50);
    return NULL;
}

static bool give_up(void *times)
{
    return ++*(int *)times > 1;
}

static void test_frames(void)
{
    struct image_frame *frame = NULL;
    is_int(frame_create(0, &frame), 0, "a frame");
    ok(frame->size > 0 && frame->size < 100000, "of a page");
    is_int(frame_resize(frame, 100000), 0, "grows");
    frame->bytes[99999] = 'x';
    is_int(frame_resize(frame, 200000), 0, "and grows");
    ok(frame->bytes[99999] == 'x' && frame->size >= 200000, "with what it held");
    is_int(frame_resize(frame, 50000), 0, "shrinks");
    ok(frame->size < 100000, "by so much");
    is_int(ftruncate(frame->fd, 0), -1, "nobody can make one shorter");
    frame_destroy(frame);
    frame_destroy(NULL);
}

static void test_decoding(const char *self)
{
    CLEANUP_STR struct str wide = STR_INIT;
    struct image_reason reason;
    struct image_info info;
    pthread_t thread[THREADS];
    char fault[64];
    int times = 0;
    is_int(crew_create(self, &crew), 0, "a crew that decodes");
    ok(decode_same(&small, 0), "pixels are those that are decoded here");
    photo_make(&(struct photo){.width = 900, .height = 700}, &wide);
    ok(decode_same(&wide, 0), "in a slot that has grown");
    ok(decode_same(&wide, 100), "resized");
    ok(decode_same(&small, 20) && decode_same(&wide, 0), "in turn");
    is_int(crew_probe(crew, &(struct crew_file){"no picture", 10, {0}}, &info, &reason), IMAGE_NOT_JPEG,
           "what is none");
    int pid = find_worker();
    siginfo_t end;
    if (pid == 0 || kill(pid, SIGKILL) < 0 || waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT) < 0)
        skip(1, "this kernel names no children");
    else
        ok(decode_same(&wide, 0), "one that was killed while it had nothing to do is no matter");
    wrong = 0;
    threads_join(thread, threads_start(thread, THREADS, "decoder", decode_often, &wide));
    is_int(wrong, 0, "%d threads", THREADS);
    crew_destroy(crew);

    snprintf(fault, sizeof fault, "hang=%zu", wide.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    setenv("DEALFS_IMAGE_PATIENCE", "1", 1);
    crew_create(self, &crew);
    const struct crew_decoding one = {.shown = {.width = 1, .height = 1, .channels = 1}};
    uint8_t pixel;
    is_int(crew_decode(crew, &(struct crew_file){wide.data, wide.length, {0}}, &one, &pixel, &reason), IMAGE_CRASHED,
           "one that hangs");
    is_str(reason.text, "the process that worked on it hung", "is not waited for for ever");
    unsetenv("DEALFS_IMAGE_PATIENCE");
    crew_destroy(crew);
    crew_create(self, &crew);
    is_int(crew_decode(crew, &(struct crew_file){wide.data, wide.length, {give_up, &times}}, &one, &pixel, &reason),
           IMAGE_CRASHED, "nor any longer than somebody wants it");
    is_str(reason.text, "its readers have ended", "in words");
    crew_heed(crew, (struct crew_care){give_up, &times});
    CLEANUP_STR struct str out = STR_INIT;
    is_int(crew_shrink(crew, wide.data, wide.length, &wanted, &out, &reason), IMAGE_CRASHED, "nor where it shrinks");
    crew_destroy(crew);
}

/* --- the allowance: while one image has all of it, another one waits --- */

static _Thread_local bool gives_up;
static atomic_int working; /* looks at an image that is worked on */

static bool is_given_up(void *unused)
{
    (void)unused;
    atomic_fetch_add(&working, 1);
    return gives_up;
}

static void *ask_hanging(void *file)
{
    CLEANUP_STR struct str out = STR_INIT;
    const struct str *hanging = file;
    crew_shrink(crew, hanging->data, hanging->length, &wanted, &out, NULL);
    return NULL;
}

static void test_allowance(const char *self)
{
    CLEANUP_STR struct str out = STR_INIT, hanging = STR_INIT;
    struct image_reason reason;
    pthread_t thread;
    char fault[64];
    photo_make(&(struct photo){.width = 2400, .height = 1801, .plain_chroma = true}, &hanging);
    if (hanging.length <= 64 << 10)
        bail_out("the look at the header has all of the file");
    snprintf(fault, sizeof fault, "hang=%zu", hanging.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    crew_create(self, &crew);
    crew_heed(crew, (struct crew_care){.gave_up = is_given_up});
    crew_allow(crew, 1); /* one at a time */
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason), IMAGE_FINE, "an image alone");
    atomic_store(&working, 0);
    pthread_create(&thread, NULL, ask_hanging, &hanging);
    while (atomic_load(&working) < 2)
        sched_yield();
    gives_up = true;
    is_int(crew_shrink(crew, hanging.data, hanging.length - 1, &wanted, &out, &reason), IMAGE_CRASHED,
           "one that does not fit waits for another one, until it gives up");
    is_str(reason.text, "its readers have ended", "and says so");
    gives_up = false;
    crew_stop(crew);
    pthread_join(thread, NULL);
    crew_destroy(crew);
    unsetenv("DEALFS_IMAGE_FAULT");
}

int main(int argc, char **argv)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct image_reason reason;
    char fault[64], self[PATH_MAX] = "";
    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return getenv("TEST_CREW_LIES") ? lie(getenv("TEST_CREW_LIES")) : crew_work();
    if (argc > 2 && strcmp(argv[1], "--hang") == 0)
        return hang(argv[2]);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) /* in the child that is another program, with valgrind */
        bail_out("no name of this program");
    photo_make(&(struct photo){.width = 400, .height = 300, .orientation = 6}, &large);
    photo_make(&(struct photo){.width = 80, .height = 100}, &small);
    photo_make(&(struct photo){.width = 401, .height = 300}, &deadly);
    test_orphan(self);
    unsetenv("DEALFS_IMAGE_FAULT");
    test_rights(self);
    if (is_checked) {
        skip(1, "with a sanitizer calls are not filtered");
    } else {
        test_calls(self);
        test_no_filters(self);
    }
    test_allowance(self);
    test_frames();
    test_decoding(self);
    test_lies(self);
    snprintf(fault, sizeof fault, "crash=%zu", deadly.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    is_int(image_shrink(large.data, large.length, &wanted, &expected, &reason), IMAGE_FINE, "made here");
    is_int(crew_create(self, &crew), 0, "a crew");
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason), IMAGE_FINE, "made there");
    ok(out.length == expected.length && memcmp(out.data, expected.data, out.length) == 0, "the same");
    is_int(crew_shrink(crew, small.data, small.length, &wanted, &out, &reason), IMAGE_SMALL, "one that is small");
    is_int(crew_shrink(crew, large.data, large.length / 2, &wanted, &out, &reason), IMAGE_TRUNCATED, "half of one");
    ok(strstr(reason.text, "end") != NULL, "with the reason: %s", reason.text);
    is_int(crew_shrink(crew, deadly.data, deadly.length, &wanted, &out, &reason), IMAGE_CRASHED, "one that kills");
    ok(strstr(reason.text, "died") != NULL, "its reason: %s", reason.text);
    is_uint(out.length, expected.length, "nothing is added by any of them");

    pthread_t thread[THREADS];
    threads_join(thread, threads_start(thread, THREADS, "asker", ask_often, NULL));
    is_int(wrong, 0, "by %d threads, every fifth kills: each has its own", THREADS);
    crew_destroy(crew);

    is_int(crew_create("/nonexistent/program", &crew), 0, "a crew without a program");
    ok(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason) != IMAGE_FINE, "makes nothing: %s",
       reason.text);
    crew_destroy(crew);
    str_fini(&large);
    str_fini(&small);
    str_fini(&deadly);
    str_fini(&expected);
    return done_testing();
}
