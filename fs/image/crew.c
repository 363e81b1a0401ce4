/* Implements crew.h.
 *
 * Threads: any. A caller takes an idle process, or starts one, and has it exclusively until the answer is complete.
 * `lock` guards the lists. */
#include "fs/image/crew.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/parcel.h"
#include "fs/image/allowance.h"
#include "fs/image/crew-inside.h"
#include "fs/image/frame.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    PATIENCE = 60,          /* seconds */
    LOOK_EVERY_MS = 50,     /* pause between checks whether it has ended */
    ANSWER_MOST = 64 << 20, /* bytes */
    TRIES = 3,              /* number of idle processes that may be found dead */
    SLOT_KEPT = 2 << 20,    /* bytes of an idle process's slot */
    HEAD = 64 << 10,        /* most headers are shorter */
    PROCESS_COST = 4 << 20, /* bytes that a process needs for any image */
};

struct crew_worker {
    LIST_ENTRY(crew_worker) link; /* in one of the crew's lists */
    pid_t pid;
    int fd;
    struct image_frame *slot; /* its slot; NULL until it decodes */
    size_t told;              /* length that it has mapped */
};

struct crew {
    char *program;
    uint64_t patience;     /* nanoseconds */
    struct crew_care care; /* for crew_shrink */
    bool bounded;          /* `allowance` is used */
    struct allowance allowance;
    pthread_mutex_t lock;
    LIST_HEAD(, crew_worker) idle, busy; /* guarded by lock */
    bool stopped;                        /* guarded by lock */
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
    c->patience = clock_bound("DEALFS_IMAGE_PATIENCE", PATIENCE);
    pthread_mutex_init(&c->lock, NULL);
    allowance_init(&c->allowance, 0);
    *crew = c;
    return 0;
}

void crew_heed(struct crew *c, struct crew_care care)
{
    c->care = care;
}

void crew_allow(struct crew *c, uint64_t bytes)
{
    c->bounded = true;
    c->allowance.most = bytes;
}

/* --- processes --- */

/* Our threads may block all signals; the worker must receive them. */
static int worker_spawn(struct crew *c, int theirs, pid_t *pid)
{
    char *argv[] = {"dealfs-resizer", "--worker", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
    /* our own stdout has a reader */
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    int error = -posix_spawn(pid, c->program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static struct crew_worker *worker_start(struct crew *c)
{
    const struct timeval patience = {.tv_usec = LOOK_EVERY_MS * 1000};
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
    setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
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
    frame_destroy(w->slot);
    free(w);
}

void crew_stop(struct crew *c)
{
    struct crew_worker *w;
    LOCK_SCOPE(&c->lock);
    c->stopped = true;
    LIST_FOREACH(w, &c->busy, link)
    kill(w->pid, SIGKILL);
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
    KEEP_ERRNO;
    crew_rest(c);
    pthread_mutex_destroy(&c->lock);
    allowance_fini(&c->allowance);
    free(c->program);
    free(c);
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

/* --- messages --- */

/* A question to a process, and its deadline. */
struct crew_call {
    const struct crew_worker *worker;
    const struct crew_care *care;
    uint64_t until;
};

/* After a wait, or a partial answer: it may come byte by byte. 0, or the reason to stop waiting. */
static int call_look(const struct crew_call *call)
{
    if (call->care->gave_up && call->care->gave_up(call->care->user))
        return -EINTR;
    return clock_now() < call->until ? 0 : -ETIMEDOUT;
}

static int call_send(const struct crew_call *call, const char *bytes, size_t n)
{
    int error = 0;
    while (n > 0 && !error) {
        ssize_t sent = send(call->worker->fd, bytes, n, MSG_NOSIGNAL);
        int failed = sent < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        error = failed || n == 0 ? failed : call_look(call);
    }
    return error;
}

static int call_receive(const struct crew_call *call, void *bytes, size_t n)
{
    int error = 0;
    for (char *at = bytes; n > 0 && !error;) {
        ssize_t more = recv(call->worker->fd, at, n, 0);
        int failed = more == 0 ? -EPIPE : more < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
        at += more > 0 ? more : 0;
        n -= more > 0 ? (size_t)more : 0;
        error = failed || n == 0 ? failed : call_look(call);
    }
    return error;
}

/* Send the question, with or without a descriptor. It is so short that it is sent completely or not at all. */
static int call_ask(const struct crew_call *call, const struct crew_question *question, int fd)
{
    ssize_t sent = parcel_send(call->worker->fd, question, sizeof *question, &fd, 1, 0);
    return sent < 0 ? (int)sent : sent < (ssize_t)sizeof *question ? -EPROTO : 0;
}

static bool answer_is_sound(const struct crew_question *question, const struct crew_answer *answer)
{
    const struct image_info *info = &answer->info;
    if ((unsigned)answer->verdict >= IMAGE_VERDICTS || answer->length > ANSWER_MOST)
        return false;
    if (answer->verdict != IMAGE_FINE)
        return answer->length == 0;
    switch (question->task) {
    case CREW_SHRINK:
        return answer->length > 0;
    case CREW_PROBE:
        return info->width - 1 < IMAGE_SIDE_MOST && info->height - 1 < IMAGE_SIDE_MOST &&
               (uint64_t)info->width * info->height <= IMAGE_PIXELS_MOST &&
               (info->components == 1 || info->components == 3) && info->orientation - 1 < 8;
    case CREW_DECODE:
        break;
    }
    return answer->length == 0;
}

/* The text goes into logs, and may be controlled by an image. */
static void make_printable(struct image_reason *reason)
{
    reason->text[sizeof reason->text - 1] = '\0';
    for (char *at = reason->text; *at; at++)
        *at = *at < ' ' || *at > '~' ? '?' : *at;
}

static int call_answer(const struct crew_call *call, const struct crew_question *question, struct crew_answer *answer,
                       struct str *out)
{
    int error = call_receive(call, answer, sizeof *answer);
    make_printable(&answer->reason);
    if (!error && !answer_is_sound(question, answer))
        error = -EPROTO;
    if (error || answer->length == 0 || !out)
        return error;
    char *room = str_reserve(out, answer->length);
    error = room ? call_receive(call, room, answer->length) : -ENOMEM;
    out->length += error ? 0 : answer->length;
    return error;
}

/* Unexpected bytes would be taken for the answer to the next question. */
static bool says_more(const struct crew_worker *w)
{
    char byte;
    return recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* A caller's request to the crew. */
struct crew_order {
    struct crew_question question;
    const struct crew_file *file;
    struct crew_answer answer;
    struct str *out; /* NULL: no bytes are wanted */
    void *pixels;    /* NULL: no pixels are wanted */
};

size_t crew_decoding_slot(const struct crew_decoding *wanted, size_t n)
{
    return image_pixels_size(&wanted->shown) + n;
}

static int slot_fill(struct crew_worker *w, struct crew_order *order)
{
    const struct crew_decoding *wanted = &order->question.decoding.wanted;
    size_t n = order->file->length, size = crew_decoding_slot(wanted, n);
    int error = !w->slot ? frame_create(size, &w->slot) : w->slot->size < size ? frame_resize(w->slot, size) : 0;
    if (error)
        return error;
    memcpy(w->slot->bytes + size - n, order->file->bytes, n);
    order->question.decoding.mapped = w->slot->mapped;
    return 0;
}

static void slot_empty(struct crew_worker *w, const struct crew_order *order)
{
    if (order->answer.verdict == IMAGE_FINE)
        memcpy(order->pixels, w->slot->bytes, image_pixels_size(&order->question.decoding.wanted.shown));
    if (w->slot->size > SLOT_KEPT)
        frame_resize(w->slot, SLOT_KEPT);
}

static int call_order(const struct crew_call *call, struct crew_worker *w, const struct crew_order *order)
{
    bool known = !order->pixels || w->told == w->slot->mapped;
    int error = call_ask(call, &order->question, known ? -1 : w->slot->fd);
    if (!error && order->pixels)
        w->told = w->slot->mapped;
    return error || order->pixels ? error : call_send(call, order->file->bytes, order->file->length);
}

static void say_failed(struct crew_answer *answer, bool started, int error)
{
    answer->verdict = started && error != -ENOMEM ? IMAGE_CRASHED : IMAGE_NO_MEMORY;
    snprintf(answer->reason.text, sizeof answer->reason.text, "%s",
             !started              ? "the process that decodes it cannot be started"
             : error == -EINTR     ? "its readers have ended"
             : error == -ETIMEDOUT ? "the process that worked on it hung"
                                   : "the process that worked on it has died");
}

/* If a process is dead, or sends something, before it has the question, another image is the cause: ask another
 * process. */
static enum image_verdict crew_ask(struct crew *c, struct crew_order *order, struct image_reason *reason)
{
    int error = -EPIPE;
    bool asked = false, started = true;
    order->question.length = order->file->length;
    for (int i = 0; i < TRIES && error == -EPIPE && !asked; i++) {
        struct crew_worker *w = worker_take(c);
        const struct crew_call call = {.worker = w, .care = &order->file->care, .until = clock_now() + c->patience};
        started = w;
        error = !w ? -errno : says_more(w) ? -EPIPE : order->pixels ? slot_fill(w, order) : 0;
        if (!error)
            error = call_order(&call, w, order);
        asked = !error;
        if (!error)
            error = call_answer(&call, &order->question, &order->answer, order->out);
        if (!error && order->pixels)
            slot_empty(w, order);
        if (w)
            worker_give(c, w, !error);
    }
    if (error)
        say_failed(&order->answer, started, error);
    if (reason)
        *reason = order->answer.reason;
    return order->answer.verdict;
}

enum image_verdict crew_probe(struct crew *c, const struct crew_file *file, struct image_info *info,
                              struct image_reason *reason)
{
    struct crew_order order = {.question = {.task = CREW_PROBE}, .file = file};
    enum image_verdict verdict = crew_ask(c, &order, reason);
    *info = order.answer.info;
    return verdict;
}

/* --- scaling, within the allowance --- */

/* Bytes that image_shrink needs: the decoded and the scaled image, coefficients, and the file in both processes. */
static uint64_t shrink_cost(const struct image_info *info, const struct image_shrinking *wanted, size_t n)
{
    const struct image_wish wish = {.side = 2 * wanted->side, .channels = 1};
    struct image_pixels from = image_decoded(info, &wish), to = from;
    to.width = info->width;
    to.height = info->height;
    if (!image_fit(wanted->side, &to.width, &to.height))
        return PROCESS_COST;
    uint64_t coefficients = info->scans ? (uint64_t)info->width * info->height * info->components * sizeof(int16_t) : 0;
    return PROCESS_COST + image_pixels_size(&from) + image_pixels_size(&to) + coefficients + 2 * (uint64_t)n;
}

/* IMAGE_FINE, although the header is bad: then image_shrink says so, and needs no memory. */
static enum image_verdict ask_cost(struct crew *c, const struct crew_file *whole, const struct image_shrinking *wanted,
                                   uint64_t *cost, struct image_reason *reason)
{
    struct crew_file head = {whole->bytes, whole->length < HEAD ? whole->length : HEAD, whole->care};
    struct image_info info;
    enum image_verdict verdict = crew_probe(c, &head, &info, reason);
    if (verdict == IMAGE_TRUNCATED && head.length < whole->length)
        verdict = crew_probe(c, whole, &info, reason);
    *cost = verdict == IMAGE_FINE ? shrink_cost(&info, wanted, whole->length) : PROCESS_COST;
    return verdict == IMAGE_CRASHED || verdict == IMAGE_NO_MEMORY ? verdict : IMAGE_FINE;
}

enum image_verdict crew_shrink(struct crew *c, const void *bytes, size_t n, const struct image_shrinking *wanted,
                               struct str *out, struct image_reason *reason)
{
    const struct crew_file file = {bytes, n, c->care};
    struct crew_order order = {.question = {.task = CREW_SHRINK, .shrinking = *wanted}, .file = &file, .out = out};
    uint64_t cost;
    if (!c->bounded)
        return crew_ask(c, &order, reason);
    enum image_verdict verdict = ask_cost(c, &file, wanted, &cost, reason);
    if (verdict != IMAGE_FINE)
        return verdict;
    int error = allowance_take(&c->allowance, cost, c->care.gave_up, c->care.user);
    if (error) {
        say_failed(&order.answer, true, error);
        if (reason)
            *reason = order.answer.reason;
        return order.answer.verdict;
    }
    verdict = crew_ask(c, &order, reason);
    allowance_give(&c->allowance, cost);
    return verdict;
}

enum image_verdict crew_decode(struct crew *c, const struct crew_file *file, const struct crew_decoding *wanted,
                               void *pixels, struct image_reason *reason)
{
    struct crew_order order = {.question = {.task = CREW_DECODE}, .file = file, .pixels = pixels};
    order.question.decoding.wanted = *wanted;
    return crew_ask(c, &order, reason);
}
