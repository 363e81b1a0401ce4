/* What a process of a crew does: see crew.h. */
#include "fs/base/cleanup.h"
#include "fs/base/process.h"
#include "fs/image/crew-inside.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#ifdef DEALFS_CHECKS /* a sanitizer takes terabytes of addresses */
static const rlim_t MEMORY_MOST = RLIM_INFINITY;
#else
/* A picture of the most pixels, and its coefficients, take about 2 GiB. */
static const rlim_t MEMORY_MOST = (rlim_t)3 << 30;
#endif

static void fault_at(uint64_t length)
{
    const char *fault = getenv("DEALFS_IMAGE_FAULT");

    if (!fault || strtoull(fault + 6 * (strncmp(fault, "crash=", 6) == 0) + 5 * (strncmp(fault, "hang=", 5) == 0), NULL,
                           10) != length)
        return;
    if (*fault == 'h')
        dprintf(STDERR_FILENO, "it hangs, as it is told to\n");
    while (*fault == 'h')
        pause();
    raise(SIGKILL);
}

/* --- frames: what was mapped stays so, for they come again --- */

enum { FRAMES = 64 };
static const size_t MAPPED_MOST = (size_t)512 << 20;

struct mapped_frame {
    uint64_t id;
    size_t size;
    char *bytes;
};

struct mapped_frames {
    struct mapped_frame frame[FRAMES];
    unsigned count;
    size_t size;
};

static void unmap_all(struct mapped_frames *m)
{
    for (unsigned i = 0; i < m->count; i++)
        munmap(m->frame[i].bytes, m->frame[i].size);
    m->count = 0;
    m->size = 0;
}

/* A frame that has grown is mapped anew; where it was before is forgotten with the others, some time. */
static char *map_frame(struct mapped_frames *m, uint64_t id, size_t size, int fd)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->frame[i].id == id && m->frame[i].size == size)
            return m->frame[i].bytes;
    if (m->count == FRAMES || m->size + size > MAPPED_MOST)
        unmap_all(m);
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    m->frame[m->count++] = (struct mapped_frame){id, size, bytes};
    m->size += size;
    return bytes;
}

/* --- one question after another --- */

struct crew_member {
    struct str file, out;
    struct mapped_frames frames;
};

/* The question, and the descriptor that came with it or -1. */
static int receive_question(struct crew_question *question, int *fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof *fd)];
    struct iovec iov = {question, sizeof *question};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n;

    while ((n = recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return n < (ssize_t)sizeof *question ? -EPROTO : 0;
}

static enum image_verdict decode(struct crew_member *m, const struct crew_question *question, int fd,
                                 struct image_reason *reason)
{
    const struct crew_decoding *wanted = &question->decoding.wanted;
    char *frame = map_frame(&m->frames, question->decoding.frame, question->decoding.mapped, fd);
    struct image_pixels decoded = wanted->decoded, shown = wanted->shown;
    bool same = decoded.width == shown.width && decoded.height == shown.height;
    CLEANUP_FREE uint8_t *between = same ? NULL : malloc(image_pixels_size(&decoded));

    if (!frame || (!same && !between))
        return IMAGE_NO_MEMORY;
    shown.data = (uint8_t *)frame + wanted->array;
    decoded.data = same ? shown.data : between;
    enum image_verdict verdict = image_decode(frame + wanted->file, wanted->length, &wanted->wish, &decoded, reason);
    return verdict == IMAGE_FINE && !same && !image_resize(&decoded, &shown) ? IMAGE_NO_MEMORY : verdict;
}

static void answer_question(struct crew_member *m, const struct crew_question *question, int fd,
                            struct crew_answer *answer)
{
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
        error = room ? crew_receive(STDIN_FILENO, room, question.length) : -ENOMEM;
    }
    if (error)
        return error;
    answer_question(m, &question, fd, &answer);
    error = crew_send(STDIN_FILENO, &answer, sizeof answer);
    return error ? error : crew_send(STDIN_FILENO, m->out.data, m->out.length);
}

static pid_t parent;

static void end_with_parent(int signal)
{
    (void)signal;
    if (getppid() != parent)
        _exit(1);
}

/* Also one whose codec goes round for ever ends when nobody waits for it any more. Signals to all of a job, or of a
 * terminal, are its parent's to heed. */
static void watch_parent(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    const struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
    const struct itimerval second = {{1, 0}, {1, 0}};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        signal(ends[i], SIG_IGN);
    parent = getppid();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

static int limit(int resource, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(resource, &now) < 0)
        return -errno;
    now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
    now.rlim_cur = now.rlim_cur < most ? now.rlim_cur : most;
    return setrlimit(resource, &now) < 0 ? -errno : 0;
}

/* A file may take over the library that decodes it. Then it has little: not the rights of root, nor a way to win any,
 * no terminal to type into, and no more memory than the limits of a picture allow. Becoming another user
 * comes first: it makes a process one that others may look at. */
static int lay_down_rights(char **user)
{
    int error = 0;

    if (user[0] && user[1])
        error = process_become((uid_t)strtoul(user[0], NULL, 10), (gid_t)strtoul(user[1], NULL, 10));
    setsid();
    if (!error)
        error = limit(RLIMIT_CORE, 0);
    if (!error)
        error = limit(RLIMIT_AS, MEMORY_MOST);
    if (!error && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0))
        error = -errno;
    return error;
}

int crew_work(char **user)
{
    struct crew_member m = {0};
    int error = lay_down_rights(user);

    watch_parent();
    while (!error)
        error = work_once(&m);
    unmap_all(&m.frames);
    str_fini(&m.file);
    str_fini(&m.out);
    return error == -EPIPE ? 0 : 1;
}
