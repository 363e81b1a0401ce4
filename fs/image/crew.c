/* See crew.h.
 *
 * Threads: any. A caller takes an idle process, or starts one, and has it alone until its answer is there. `lock` is
 * for the lists. */
#include "fs/image/crew.h"

#include "fs/base/cleanup.h"
#include "fs/image/crew-inside.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PATIENCE = 60, ANSWER_MOST = 64 << 20 }; /* seconds; bytes */

struct crew_worker {
    LIST_ENTRY(crew_worker) link; /* of the crew's lists */
    pid_t pid;
    int fd;
};

struct crew {
    char *program;
    char uid[16], gid[16]; /* empty: ours */
    pthread_mutex_t lock;
    LIST_HEAD(, crew_worker) idle, busy; /* lock */
    bool stopped;                        /* lock */
};

int crew_create(const char *program, struct crew **crew)
{
    struct crew *c = calloc(1, sizeof *c);

    if (c)
        c->program = strdup(program);
    if (!c || !c->program) {
        free(c);
        return -ENOMEM;
    }
    pthread_mutex_init(&c->lock, NULL);
    *crew = c;
    return 0;
}

void crew_become(struct crew *c, uid_t uid, gid_t gid)
{
    snprintf(c->uid, sizeof c->uid, "%u", uid);
    snprintf(c->gid, sizeof c->gid, "%u", gid);
}

/* --- processes --- */

/* Our threads may block all signals; the worker's are to reach it. */
static int worker_spawn(struct crew *c, int theirs, pid_t *pid)
{
    char *argv[] = {"dealfs-resizer", "--worker", c->uid[0] ? c->uid : NULL, c->gid, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;

    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0); /* our own has a reader */
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    int error = -posix_spawn(pid, c->program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static struct crew_worker *worker_start(struct crew *c)
{
    const struct timeval patience = {.tv_sec = PATIENCE};
    struct crew_worker *w = calloc(1, sizeof *w);
    int ends[2];

    if (!w || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        free(w);
        return NULL;
    }
    int error = worker_spawn(c, ends[1], &w->pid);
    close(ends[1]);
    w->fd = ends[0];
    setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!error)
        return w;
    close(w->fd);
    free(w);
    errno = -error;
    return NULL;
}

static void worker_end(struct crew_worker *w)
{
    close(w->fd);
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(w);
}

void crew_stop(struct crew *c)
{
    struct crew_worker *w;

    pthread_mutex_lock(&c->lock);
    c->stopped = true;
    LIST_FOREACH(w, &c->busy, link)
    kill(w->pid, SIGKILL);
    pthread_mutex_unlock(&c->lock);
}

void crew_rest(struct crew *c)
{
    for (struct crew_worker *w = NULL;;) {
        pthread_mutex_lock(&c->lock);
        w = LIST_FIRST(&c->idle);
        if (w)
            LIST_REMOVE(w, link);
        pthread_mutex_unlock(&c->lock);
        if (!w)
            return;
        worker_end(w);
    }
}

void crew_destroy(struct crew *c)
{
    if (!c)
        return;
    int saved = errno;
    crew_rest(c);
    pthread_mutex_destroy(&c->lock);
    free(c->program);
    free(c);
    errno = saved;
}

static struct crew_worker *worker_take(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    struct crew_worker *w = LIST_FIRST(&c->idle);
    if (w)
        LIST_REMOVE(w, link);
    pthread_mutex_unlock(&c->lock);
    if (!w)
        w = worker_start(c);
    int saved = errno;
    pthread_mutex_lock(&c->lock);
    if (w)
        LIST_INSERT_HEAD(&c->busy, w, link);
    if (w && c->stopped)
        kill(w->pid, SIGKILL);
    pthread_mutex_unlock(&c->lock);
    errno = saved;
    return w;
}

static void worker_give(struct crew *c, struct crew_worker *w, bool good)
{
    pthread_mutex_lock(&c->lock);
    LIST_REMOVE(w, link);
    if (good)
        LIST_INSERT_HEAD(&c->idle, w, link);
    pthread_mutex_unlock(&c->lock);
    if (!good)
        worker_end(w);
}

/* --- what is said --- */

int crew_send(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int crew_receive(int fd, void *bytes, size_t n, int patience)
{
    for (char *at = bytes; n > 0;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int count = poll(&ready, 1, patience);
        if (count == 0)
            return -ETIMEDOUT;
        ssize_t got = count < 0 ? -1 : recv(fd, at, n, 0);
        if (got == 0)
            return -EPIPE;
        if (got < 0 && errno != EINTR)
            return -errno;
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int worker_ask(const struct crew_worker *w, const struct crew_question *question, const void *bytes,
                      struct crew_answer *answer, struct str *out)
{
    size_t before = out->length;

    int error = crew_send(w->fd, question, sizeof *question);
    if (!error)
        error = crew_send(w->fd, bytes, question->length);
    if (!error)
        error = crew_receive(w->fd, answer, sizeof *answer, PATIENCE * 1000);
    answer->reason.text[sizeof answer->reason.text - 1] = '\0';
    if (!error && (answer->length > ANSWER_MOST || (unsigned)answer->verdict >= IMAGE_VERDICTS ||
                   (answer->verdict == IMAGE_FINE) != (answer->length > 0)))
        error = -EPROTO;
    char *room = error ? NULL : str_reserve(out, answer->length);
    if (!error && !room)
        error = -ENOMEM;
    if (!error)
        error = crew_receive(w->fd, room, answer->length, PATIENCE * 1000);
    out->length = error ? before : before + answer->length;
    return error;
}

enum image_verdict crew_shrink(struct crew *c, const void *bytes, size_t n, const struct image_shrinking *wanted,
                               struct str *out, struct image_reason *reason)
{
    const struct crew_question question = {.wanted = *wanted, .length = n};
    struct crew_answer answer = {.verdict = IMAGE_CRASHED};
    struct crew_worker *w = worker_take(c);

    int error = w ? worker_ask(w, &question, bytes, &answer, out) : -errno;
    if (w)
        worker_give(c, w, !error);
    if (error) {
        answer.verdict = w && error != -ENOMEM ? IMAGE_CRASHED : IMAGE_NO_MEMORY;
        snprintf(answer.reason.text, sizeof answer.reason.text, "%s",
                 !w                                        ? "no process can be started for it"
                 : error == -ETIMEDOUT || error == -EAGAIN ? "the process that worked on it did not come back"
                                                           : "the process that worked on it has died");
    }
    if (reason)
        *reason = answer.reason;
    return answer.verdict;
}
