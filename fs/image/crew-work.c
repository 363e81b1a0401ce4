/* The code of a crew's process: see crew.h. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/parcel.h"
#include "fs/image/confine.h"
#include "fs/image/crew-inside.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <linux/futex.h>

#ifdef DEALFS_CHECKS /* a sanitizer reserves terabytes of address space */
static const rlim_t MEMORY_MOST = RLIM_INFINITY;
#else
/* The largest image with its coefficients takes about 2 GiB. */
static const rlim_t MEMORY_MOST = (rlim_t)3 << 30;
#endif

/* --- faults for tests: what a file that takes over the process could do --- */

static void cause_crash(void)
{
    __builtin_trap();
}

static void wait_for_ever(void)
{
#ifdef DEALFS_CHECKS /* a sanitizer delays signals if it knows about the wait */
    pause();
#else
    const uint32_t word = 0;
    syscall(SYS_futex, &word, FUTEX_WAIT, word, NULL, NULL, 0);
#endif
}

static void cause_hang(void)
{
    static const char line[] = "it hangs, as it is told to\n";
    bool said = write(STDERR_FILENO, line, sizeof line - 1) > 0;
    while (said)
        wait_for_ever();
}

static void cause_open(void)
{
    close(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static void cause_socket(void)
{
    close(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static void cause_execve(void)
{
    execl("/nonexistent/program", "program", (char *)NULL);
}

static void cause_kill(void)
{
    kill(getppid(), 0);
}

static void cause_code(void)
{
    enum { SIZE = 4096 };
    munmap(mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), SIZE);
}

static const struct crew_fault {
    const char *name;
    void (*cause)(void);
} faults[] = {{"crash", cause_crash},   {"hang", cause_hang}, {"open", cause_open}, {"socket", cause_socket},
              {"execve", cause_execve}, {"kill", cause_kill}, {"code", cause_code}};

static void fault_at(uint64_t length)
{
    const char *fault = getenv("DEALFS_IMAGE_FAULT"), *of = fault ? strchr(fault, '=') : NULL;
    if (!of || strtoull(of + 1, NULL, 10) != length)
        return;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strncmp(fault, faults[i].name, (size_t)(of - fault)) == 0)
            faults[i].cause();
}

/* --- the loop --- */

struct crew_member {
    struct str file, out;
    char *slot; /* mapped; contains the file, and gets the pixels */
    size_t mapped;
    const char *failed; /* the right that it could not give up: then it decodes nothing */
    int error;          /* errno of that failure */
};

static int member_receive(void *bytes, size_t n)
{
    for (char *at = bytes; n > 0;) {
        ssize_t more = read(STDIN_FILENO, at, n);
        if (more == 0)
            return -EPIPE;
        if (more < 0 && errno != EINTR)
            return -errno;
        at += more > 0 ? more : 0;
        n -= more > 0 ? (size_t)more : 0;
    }
    return 0;
}

/* Receive a question, and the descriptor that came with it or -1. */
static int receive_question(struct crew_question *question, int *fd)
{
    ssize_t n = parcel_receive(STDIN_FILENO, question, sizeof *question, fd, 1, NULL);
    if (n <= 0)
        return n < 0 ? (int)n : -EPIPE;
    return n < (ssize_t)sizeof *question ? -EPROTO : 0;
}

/* A descriptor comes with the first question of this kind, and when the slot has grown. */
static bool map_slot(struct crew_member *m, size_t size, int fd)
{
    if (fd < 0)
        return m->slot && m->mapped == size;
    if (m->slot)
        munmap(m->slot, m->mapped);
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    m->slot = bytes == MAP_FAILED ? NULL : bytes;
    m->mapped = size;
    return m->slot;
}

static enum image_verdict decode(struct crew_member *m, const struct crew_question *question, int fd,
                                 struct image_reason *reason)
{
    const struct crew_decoding *wanted = &question->decoding.wanted;
    struct image_pixels decoded = wanted->decoded, shown = wanted->shown;
    bool same = decoded.width == shown.width && decoded.height == shown.height;
    CLEANUP_FREE uint8_t *between = same ? NULL : malloc(image_pixels_size(&decoded));
    if (!map_slot(m, question->decoding.mapped, fd) || (!same && !between))
        return IMAGE_NO_MEMORY;
    shown.data = (uint8_t *)m->slot;
    decoded.data = same ? shown.data : between;
    const char *file = m->slot + image_pixels_size(&shown);
    enum image_verdict verdict = image_decode(file, question->length, &wanted->wish, &decoded, reason);
    return verdict == IMAGE_FINE && !same && !image_resize(&decoded, &shown) ? IMAGE_NO_MEMORY : verdict;
}

static void answer_question(struct crew_member *m, const struct crew_question *question, int fd,
                            struct crew_answer *answer)
{
    if (m->error) {
        answer->verdict = IMAGE_CRASHED;
        snprintf(
            answer->reason.text, sizeof answer->reason.text,
            "the decoding process cannot give up its rights, so it decodes nothing: %s: %s: see Security in dealfs(1)",
            m->failed, strerror(-m->error));
        return;
    }
    if (question->task != CREW_PROBE)
        fault_at(question->length);
    switch (question->task) {
    case CREW_SHRINK:
        answer->verdict = image_shrink(m->file.data, question->length, &question->shrinking, &m->out, &answer->reason);
        answer->length = m->out.length;
        break;
    case CREW_PROBE:
        answer->verdict = image_probe(m->file.data, question->length, NULL, &answer->info, &answer->reason);
        break;
    case CREW_DECODE:
        answer->verdict = decode(m, question, fd, &answer->reason);
        break;
    }
}

static int work_once(struct crew_member *m)
{
    struct crew_question question;
    struct crew_answer answer = {.verdict = IMAGE_NO_MEMORY};
    CLEANUP_CLOSE int fd = -1;
    str_clear(&m->file);
    str_clear(&m->out);
    int error = receive_question(&question, &fd);
    if (!error && question.task != CREW_DECODE) {
        char *room = str_reserve(&m->file, question.length);
        error = room ? member_receive(room, question.length) : -ENOMEM;
    }
    if (error)
        return error;
    answer_question(m, &question, fd, &answer);
    error = file_write_all(STDIN_FILENO, &answer, sizeof answer);
    return error ? error : file_write_all(STDIN_FILENO, m->out.data, m->out.length);
}

static pid_t parent;

static void end_with_parent(int signal)
{
    (void)signal;
    if (getppid() != parent)
        _exit(1);
}

/* Ends this process, even if its codec loops forever, when nobody waits for it any more. Signals to all processes of a
 * job or terminal are left to the parent. */
static void watch_parent(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
    const struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
    const struct itimerval second = {{1, 0}, {1, 0}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        signal(ends[i], SIG_IGN);
    parent = getppid();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

/* Limit memory to what the limits of an image allow, and close the log, except for tests of faults. */
static int limit_itself(const char **what)
{
    struct rlimit most = {MEMORY_MOST, MEMORY_MOST}, now;
    *what = "limit memory";
    if (getrlimit(RLIMIT_AS, &now) < 0 || (now.rlim_max > MEMORY_MOST && setrlimit(RLIMIT_AS, &most) < 0))
        return -errno;
#ifndef DEALFS_CHECKS
    if (!getenv("DEALFS_IMAGE_FAULT"))
        dup2(STDOUT_FILENO, STDERR_FILENO);
#endif
    return confine_process(what);
}

int crew_work(void)
{
    struct crew_member m = {0};
    int error = 0;
    watch_parent();
    m.error = limit_itself(&m.failed);
    while (!error)
        error = work_once(&m);
    str_fini(&m.file);
    str_fini(&m.out);
    return error == -EPIPE ? 0 : 1;
}
