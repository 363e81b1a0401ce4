/* Pictures made smaller in processes of their own, some of which die. This program is such a process, too. */
#include "fs/base/cleanup.h"
#include "fs/base/thread.h"
#include "fs/image/crew-inside.h"
#include "fs/image/crew.h"
#include "tests/fs/image/photo.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20 };

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
    enum { PATIENCE_MS = 30000 };
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
    ok(poll(&ready, 1, PATIENCE_MS) == 1 && read(ends[0], &said, 1) == 1, "one that hangs");
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ssize_t n = 1;
    while (n == 1 && poll(&ready, 1, PATIENCE_MS) == 1)
        n = read(ends[0], &said, 1);
    is_int(n, 0, "ends when who asked is killed");
    close(ends[0]);
}

/* Does what a process could do that a file has taken over. */
static int lie(const char *how)
{
    enum { DRIP_US = 20000, PATIENCE_MS = 30000 };
    const struct crew_answer answer[] = {{.verdict = IMAGE_SMALL, .reason = {"first"}},
                                         {.verdict = IMAGE_SMALL, .reason = {"second"}}};
    struct pollfd asked = {.fd = STDIN_FILENO, .events = POLLIN};

    if (poll(&asked, 1, PATIENCE_MS) != 1)
        return 1;
    if (strcmp(how, "twice") == 0 && send(STDIN_FILENO, answer, sizeof answer, MSG_NOSIGNAL) < 0)
        return 1;
    while (strcmp(how, "drip") == 0 && send(STDIN_FILENO, answer, 1, MSG_NOSIGNAL) == 1)
        usleep(DRIP_US);
    return pause();
}

static void test_lies(const char *self)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct image_reason reason;

    setenv("TEST_CREW_LIES", "drip", 1);
    setenv("DEALFS_IMAGE_PATIENCE", "1", 1);
    crew_create(self, &crew);
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason), IMAGE_CRASHED, "one byte at a time");
    is_str(reason.text, "the process that worked on it did not come back", "is not waited for for ever");
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
    enum { NOBODY = 65534 };
    CLEANUP_STR struct str out = STR_INIT;
    char path[64];
    struct stat status;

    if (crew_create(self, &crew) < 0)
        bail_out("no crew");
    crew_become(crew, NOBODY, NOBODY);
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, NULL), IMAGE_FINE, "made by another user");
    int pid = find_worker();
    if (pid == 0) {
        skip(6, "this kernel names no children");
    } else {
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        ok(worker_has(pid, "status", "NoNewPrivs:\t1"), "a worker wins no rights");
        ok(worker_has(pid, "limits", "Max core file size        0                    0"), "leaves no core");
        ok(stat(path, &status) == 0 && status.st_uid == 0, "shows itself to nobody");
        ok(getsid(pid) == pid, "has no terminal");
        ok(geteuid() != 0 || worker_has(pid, "status", "Uid:\t65534\t65534\t65534\t65534"), "is not root");
        ok(geteuid() != 0 || worker_has(pid, "status", "CapEff:\t0000000000000000"), "nor can do what root can");
    }
    crew_destroy(crew);
}

/* Decodes in a frame, and here: the same? */
static bool decode_same(struct image_frame *frame, const struct str *file, uint32_t side)
{
    const struct crew_care nobody = {0};
    struct crew_decoding d = {.length = file->length, .array = 128, .wish = {.channels = 3, .side = 2 * side}};
    struct image_info info;

    if (crew_probe(crew, file->data, file->length, nobody, &info, NULL) != IMAGE_FINE)
        return false;
    d.decoded = d.shown = image_decoded(&info, &d.wish);
    bool smaller = side && image_fit(side, &d.shown.width, &d.shown.height);
    struct image_pixels decoded = d.decoded, shown = d.shown;
    size_t size = image_pixels_size(&shown);
    CLEANUP_FREE uint8_t *here = decoded.data = malloc(image_pixels_size(&decoded));
    CLEANUP_FREE uint8_t *resized = shown.data = malloc(size);
    d.file = d.array + size;
    if (!here || !resized || frame_resize(frame, d.file + d.length) < 0)
        return false;
    memcpy(frame->bytes + d.file, file->data, file->length);
    frame->bytes[d.array - 1] = 'x';
    if (image_decode(file->data, file->length, &d.wish, &decoded, NULL) != IMAGE_FINE ||
        (smaller && !image_resize(&decoded, &shown)) || crew_decode(crew, frame, &d, nobody, NULL) != IMAGE_FINE)
        return false;
    return memcmp(frame->bytes + d.array, smaller ? resized : here, size) == 0 && frame->bytes[d.array - 1] == 'x';
}

static void *decode_often(void *file)
{
    struct image_frame *frame;

    if (frame_create(1, &frame) < 0)
        bail_out("no frame");
    for (int i = 0; i < ROUNDS; i++)
        wrong += !decode_same(frame, file, i % 3 ? 0 : 50);
    frame_destroy(frame);
    return NULL;
}

static bool give_up(void *times)
{
    return ++*(int *)times > 1;
}

static void test_frames(const char *self)
{
    CLEANUP_STR struct str wide = STR_INIT;
    struct image_frame *frame = NULL, *other = NULL;
    struct image_reason reason;
    struct image_info info;
    pthread_t thread[THREADS];
    char fault[64];
    int times = 0;

    is_int(crew_create(self, &crew), 0, "a crew that decodes");
    is_int(frame_create(0, &frame), 0, "a frame");
    ok(decode_same(frame, &small, 0), "pixels are those that are decoded here");
    photo_make(&(struct photo){.width = 900, .height = 700}, &wide);
    ok(decode_same(frame, &wide, 0), "in a frame that has grown");
    ok(frame->size >= 900 * 700 * 3, "by so much");
    ok(decode_same(frame, &wide, 100), "resized, in one that has shrunk");
    ok(frame->size < 900 * 700, "by so much");
    ok(frame_create(frame->size, &other) == 0 && decode_same(other, &small, 20) && decode_same(frame, &small, 0),
       "two in turn");
    is_int(ftruncate(other->fd, 0), -1, "nobody can make one shorter");
    frame_destroy(other);
    frame_destroy(NULL);
    is_int(crew_probe(crew, "no picture", 10, (struct crew_care){0}, &info, &reason), IMAGE_NOT_JPEG, "what is none");
    int pid = find_worker();
    siginfo_t end;
    if (pid == 0 || kill(pid, SIGKILL) < 0 || waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT) < 0)
        skip(1, "this kernel names no children");
    else
        ok(decode_same(frame, &wide, 0), "one that was killed while it had nothing to do is no matter");
    wrong = 0;
    threads_join(thread, threads_start(thread, THREADS, "decoder", decode_often, &wide));
    is_int(wrong, 0, "%d threads", THREADS);
    crew_destroy(crew);

    snprintf(fault, sizeof fault, "hang=%zu", wide.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    setenv("DEALFS_IMAGE_PATIENCE", "1", 1);
    crew_create(self, &crew);
    const struct crew_decoding hangs = {.length = wide.length};
    is_int(crew_decode(crew, frame, &hangs, (struct crew_care){0}, &reason), IMAGE_CRASHED, "one that hangs");
    is_str(reason.text, "the process that worked on it did not come back", "is not waited for for ever");
    unsetenv("DEALFS_IMAGE_PATIENCE");
    crew_destroy(crew);
    crew_create(self, &crew);
    is_int(crew_decode(crew, frame, &hangs, (struct crew_care){give_up, &times}, &reason), IMAGE_CRASHED,
           "nor any longer than somebody wants it");
    is_str(reason.text, "nobody waits for it any more", "in words");
    crew_heed(crew, (struct crew_care){give_up, &times});
    CLEANUP_STR struct str out = STR_INIT;
    is_int(crew_shrink(crew, wide.data, wide.length, &wanted, &out, &reason), IMAGE_CRASHED, "nor where it shrinks");
    crew_destroy(crew);
    frame_destroy(frame);
}

int main(int argc, char **argv)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct image_reason reason;
    char fault[64], self[PATH_MAX] = "";

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return getenv("TEST_CREW_LIES") ? lie(getenv("TEST_CREW_LIES")) : crew_work(argv + 2);
    if (argc > 2 && strcmp(argv[1], "--hang") == 0)
        return hang(argv[2]);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) /* in the child that is another program, with valgrind */
        bail_out("no name of this program");
    photo_make(&(struct photo){.width = 400, .height = 300, .orientation = 6}, &large);
    photo_make(&(struct photo){.width = 80, .height = 100}, &small);
    photo_make(&(struct photo){.width = 401, .height = 300}, &deadly);
    test_orphan(self);
    test_rights(self);
    unsetenv("DEALFS_IMAGE_FAULT");
    test_frames(self);
    test_lies(self);
    snprintf(fault, sizeof fault, "crash=%zu", deadly.length);
    setenv("DEALFS_IMAGE_FAULT", fault, 1);
    is_int(image_shrink(large.data, large.length, &wanted, &expected, &reason), IMAGE_FINE, "made here");
    is_int(crew_create(self, &crew), 0, "a crew");
    is_int(crew_shrink(crew, large.data, large.length, &wanted, &out, &reason), IMAGE_FINE, "made there");
    ok(out.length == expected.length && memcmp(out.data, expected.data, out.length) == 0, "the same");
    is_int(crew_shrink(crew, small.data, small.length, &wanted, &out, &reason), IMAGE_SMALL, "one that is small");
    is_int(crew_shrink(crew, large.data, large.length / 2, &wanted, &out, &reason), IMAGE_TRUNCATED, "half of one");
    ok(strstr(reason.text, "end") != NULL, "the reason comes, too: %s", reason.text);
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
