/* A FUSE session over slots.
 *
 * Threads:
 *
 *   readers   `config.threads`, each with its own slot; they run the handlers. Until INIT is answered only one reads
 *   tender    exists only if the previous server died with threads in the kernel: watches slots they may still fill
 *   replies   any thread may reply, through write_reply, which libfuse calls
 *   watch     answers for a process that dies; the handler's own reply then comes too late
 *
 * `lock` guards `initialised`, `ended` and what the lane bars; `changed` signals changes of the first two and of
 * `stopping`. */
#include "fs/fuse/session.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/fuse/init.h"
#include "fs/fuse/reply.h"
#include "fs/fuse/watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    SESSION_FDS = REPLY_FDS,
    STRICT_BLAME = 2 * BLAME_DIED,
    BAR_S = 60, /* how long READs fail that ended servers */
    KICK = SIGUSR1,
};

struct session {
    struct session_config config;
    struct fuse_session *fuse;
    struct slots *slots;
    struct watch *watch; /* NULL: none */
    pthread_t *thread;
    int threads; /* number of started threads, including the tender */
    atomic_int exited;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool initialised, ended; /* guarded by lock */
    atomic_bool stopping;
};

/* libfuse's hooks get only the descriptor and the user's data, so sessions are found by descriptor. Set before the
 * session's threads start. */
static struct session *session_of_fd[SESSION_FDS];
/* This thread is inside libfuse's handling of INIT. */
static _Thread_local bool in_init;
/* The request that this thread handles. */
static _Thread_local struct session_request current;

static void session_end(struct session *s, int error)
{
    pthread_mutex_lock(&s->lock);
    bool first = !s->ended;
    s->ended = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    slots_stop(s->slots);
    if (first && s->config.ended)
        s->config.ended(s->config.ended_user, error);
}

/* The connection has ended, and nobody needs an answer. */
static bool is_end(int error)
{
    return error == ENODEV || error == ECONNABORTED || error == ENOTCONN || error == ECONNRESET || error == EPIPE;
}

/* The kernel takes each reply once: ENOENT means that the previous server had sent this one. */
static ssize_t write_init(struct session *s, const struct iovec *iov, int count)
{
    struct init_record *r = &s->config.lane->init;
    int error = init_record_reply(r, iov, count, s->config.lane->room);
    if (error) {
        log_error("%s mount: libfuse does not support the kernel's version of the FUSE protocol", s->config.name);
        reply_write(s->config.fd, iov, count);
        session_end(s, error);
        return 0;
    }
    if (atomic_load(&r->state) != INIT_ANSWERED) {
        struct iovec reply = {r->reply, atomic_load(&r->reply_length)};
        if (reply_write(s->config.fd, &reply, 1) < 0 && errno != ENOENT) {
            error = errno;
            if (!is_end(error))
                log_error("answer INIT of the %s mount: %s", s->config.name, strerror(error));
            session_end(s, is_end(error) ? 0 : -error);
            return 0;
        }
        atomic_store(&r->state, INIT_ANSWERED);
    }
    LOCK_SCOPE(&s->lock);
    s->initialised = true;
    pthread_cond_broadcast(&s->changed);
    return 0;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *user)
{
    (void)user;
    struct session *s = session_of_fd[fd];
    const struct fuse_out_header *out = iov[0].iov_base;
    if (in_init)
        return write_init(s, iov, count);
    uint64_t unique = out->unique;
    ssize_t n = reply_write(fd, iov, count);
    int error = n < 0 ? errno : 0;
    if (unique == 0) /* a notification: nobody waits for it */
        goto out;
    if (error && error != ENOENT && !is_end(error)) {
        /* The kernel rejected the reply. The waiting process must get an answer nevertheless. */
        log_limited(LOG_LEVEL_ERROR, 5, "%s mount: the kernel rejected a reply of %u bytes: %s", s->config.name,
                    out->len, strerror(error));
        reply_error(fd, unique, -EIO);
    }
    if (!slots_answered(s->slots, unique) && s->watch)
        watch_late_reply(s->watch);
out:
    errno = error;
    return n;
}

static void pass_on(struct session *s, void *request, size_t n)
{
    struct fuse_buf buffer = {.size = n, .mem = request};
    fuse_session_process_buf(s->fuse, &buffer);
}

static void handle_init(struct session *s, const void *request, size_t n)
{
    struct init_record *r = &s->config.lane->init;
    int error = init_record_request(r, request, n);
    if (error) {
        session_end(s, error);
        return;
    }
    unsigned char copy[sizeof r->request];
    memcpy(copy, r->request, r->request_length);
    in_init = true;
    pass_on(s, copy, r->request_length);
    in_init = false;
}

static void handle_interrupt(struct session *s, const struct fuse_in_header *in)
{
    if (s->watch)
        watch_interrupt(s->watch, in);
    if (!s->config.interrupts)
        return;
    /* libfuse may keep it for later; its reply, if any, belongs to no slot */
    struct {
        struct fuse_in_header header;
        struct fuse_interrupt_in body;
    } copy;
    if (in->len == sizeof copy) {
        memcpy(&copy, in, sizeof copy);
        pass_on(s, &copy, sizeof copy);
    }
}

/* Is this a request that ends servers, or a READ of what has ended some? Then it fails now. */
static bool refuse_poison(struct session *s, int slot, const struct fuse_in_header *in)
{
    bool strict = s->config.strict_reads && in->opcode == FUSE_READ;
    unsigned blame = slots_blame(s->slots, slot);
    bool poison = blame >= (strict ? STRICT_BLAME : BLAME_MOST);
    if (!poison && (atomic_load_explicit(&s->config.lane->barred, memory_order_relaxed) == 0 ||
                    !lane_bars(s->config.lane, in, clock_now())))
        return false;
    if (poison) {
        log_error("%s mount: request %u on inode %llu: each of the last servers died while it was in progress: "
                  "it fails with EIO%s",
                  s->config.name, in->opcode, (unsigned long long)in->nodeid,
                  in->opcode != FUSE_READ ? ""
                  : strict                ? ", and so does each READ of this file for a minute"
                                          : ", and so does each READ of these bytes for a minute");
        LOCK_SCOPE(&s->lock);
        lane_bar_read(s->config.lane, in, strict, clock_now() + BAR_S * SECOND);
    }
    reply_error(s->config.fd, in->unique, -EIO);
    slots_answered(s->slots, in->unique);
    return true;
}

/* Answer the request in a slot, now or by another thread. True: the slot is the caller's again. */
static bool session_handle(struct session *s, int slot)
{
    struct fuse_in_header *in = lane_request(s->config.lane, slot);
    if (s->config.foreign_pids)
        in->pid = 0;
    log_debug("session", "%s: slot %d, request %" PRIu64 ", opcode %u, inode %" PRIu64 ", process %u", s->config.name,
              slot, (uint64_t)in->unique, in->opcode, (uint64_t)in->nodeid, in->pid);
    switch (in->opcode) {
    case FUSE_INIT:
        handle_init(s, in, in->len);
        return true;
    case FUSE_INTERRUPT:
        handle_interrupt(s, in);
        return true;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET: /* inodes are catalog numbers; nothing is counted */
    case FUSE_NOTIFY_REPLY:
        return true;
    }
    slots_begin(s->slots, slot);
    current = (struct session_request){s, in->unique};
    if (!refuse_poison(s, slot, in))
        pass_on(s, in, in->len);
    current = (struct session_request){0};
    return slots_end(s->slots, slot);
}

/* 0: the slot has a request. -EAGAIN: check the state again. -ENODEV: the end. */
static int session_receive(struct session *s, int slot)
{
    struct fuse_in_header *in = lane_request(s->config.lane, slot);
    ssize_t n = read(s->config.fd, in, s->config.lane->room);
    if (n >= (ssize_t)sizeof *in && (size_t)n == in->len)
        return 0;
    int error = n > 0 ? EIO : n == 0 ? ENODEV : errno;
    if (error == EINTR || error == EAGAIN || error == ENOENT)
        return -EAGAIN;
    if (!is_end(error))
        log_error("read a request of the %s mount: %s", s->config.name, strerror(error));
    session_end(s, is_end(error) ? 0 : -error);
    return -ENODEV;
}

static bool wait_initialised(struct session *s)
{
    LOCK_SCOPE(&s->lock);
    while (!s->initialised && !s->ended && !atomic_load(&s->stopping))
        pthread_cond_wait(&s->changed, &s->lock);
    return s->initialised;
}

int session_wait(struct session *s)
{
    return wait_initialised(s) ? 0 : -ENODEV;
}

/* A slot with a request: one to replay, else one that was just read into `mine`. SLOT_NONE: try again. */
static int next_request(struct session *s, int *mine, bool *over)
{
    int slot = slots_replay(s->slots);
    if (slot != SLOT_NONE)
        return slot;
    if (*mine == SLOT_NONE)
        *mine = slots_take(s->slots);
    else
        slots_ready(s->slots, *mine);
    int error = *mine == SLOT_NONE ? -ENODEV : session_receive(s, *mine);
    *over = error == -ENODEV;
    if (error)
        return SLOT_NONE;
    slot = *mine;
    *mine = SLOT_NONE;
    return slot;
}

/* If a request was answered at once, the same thread reads into its slot again. */
static void session_serve(struct session *s)
{
    int mine = SLOT_NONE;
    bool over = false;
    while (!over && !atomic_load_explicit(&s->stopping, memory_order_relaxed)) {
        int slot = next_request(s, &mine, &over);
        if (slot == SLOT_NONE || !session_handle(s, slot))
            continue;
        if (mine == SLOT_NONE)
            mine = slot;
        else
            slots_put(s->slots, slot);
    }
    if (mine != SLOT_NONE)
        slots_put(s->slots, mine);
}

static void *first_thread(void *arg)
{
    struct session *s = arg;
    const struct init_record *r = &s->config.lane->init;
    prctl(PR_SET_NAME, s->config.name);
    if (atomic_load(&r->state) != INIT_NONE)
        handle_init(s, r->request, r->request_length);
    session_serve(s);
    atomic_fetch_add(&s->exited, 1);
    return NULL;
}

static void *other_thread(void *arg)
{
    struct session *s = arg;
    prctl(PR_SET_NAME, s->config.name);
    if (wait_initialised(s))
        session_serve(s);
    atomic_fetch_add(&s->exited, 1);
    return NULL;
}

static void *tender_thread(void *arg)
{
    struct session *s = arg;
    prctl(PR_SET_NAME, "late");
    for (int left = 1; left > 0 && !atomic_load(&s->stopping);) {
        int slot = slots_late(s->slots, &left);
        if (slot == SLOT_NONE) {
            clock_sleep(10 * MILLISECOND);
            continue;
        }
        left++; /* requests may have arrived in more of them meanwhile */
        if (lane_request(s->config.lane, slot)->opcode != FUSE_INIT && !wait_initialised(s))
            break;
        if (session_handle(s, slot))
            slots_put(s->slots, slot);
    }
    atomic_fetch_add(&s->exited, 1);
    return NULL;
}

static void kicked(int signal)
{
    (void)signal;
}

static int start_thread(struct session *s, void *(*body)(void *))
{
    int error = pthread_create(&s->thread[s->threads], NULL, body, s);
    if (!error)
        s->threads++;
    return -error;
}

int session_start(struct session *s)
{
    /* without SA_RESTART, so that it interrupts a read */
    sigaction(KICK, &(struct sigaction){.sa_handler = kicked}, NULL);
    session_of_fd[s->config.fd] = s;
    int error = start_thread(s, first_thread);
    for (int i = 1; i < s->config.threads && !error; i++)
        error = start_thread(s, other_thread);
    if (!error && slots_late_count(s->slots) > 0)
        error = start_thread(s, tender_thread);
    if (error)
        session_stop(s);
    return error;
}

void session_stop(struct session *s)
{
    if (!s || s->threads == 0)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    slots_stop(s->slots);
    /* a thread may have checked `stopping` just before and read again: kick until all have ended */
    while (atomic_load(&s->exited) < s->threads) {
        for (int i = 0; i < s->threads; i++)
            pthread_kill(s->thread[i], KICK);
        clock_sleep(MILLISECOND);
    }
    while (s->threads > 0)
        pthread_join(s->thread[--s->threads], NULL);
    watch_stop(s->watch);
}

static void to_log(enum fuse_log_level level, const char *format, va_list args)
{
    char line[256];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    log_line(level <= FUSE_LOG_ERR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s", line);
}

int session_create(const struct session_config *config, struct session **session)
{
    if (config->fd < 0 || config->fd >= SESSION_FDS || config->threads < 1)
        return -EINVAL;
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->config = *config;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    fuse_set_log_func(to_log);
    char *name = (char *)config->name;
    struct fuse_args args = FUSE_ARGS_INIT(1, &name);
    int error = slots_create(config->lane, config->killed ? BLAME_KILLED : BLAME_DIED, &s->slots);
    if (error)
        goto error;
    error = -ENOMEM;
    s->thread = calloc((size_t)config->threads + 1, sizeof *s->thread);
    s->fuse = fuse_session_new(&args, config->ops, sizeof *config->ops, config->user);
    fuse_opt_free_args(&args);
    if (!s->thread || !s->fuse)
        goto error;
    error = reply_attach(s->fuse, config->fd, write_reply);
    if (!error && config->pulse)
        error = watch_create(&(struct watch_config){s->slots, config->fd, config->threads, config->pulse,
                                                    config->cancel, config->cancel_user},
                             &s->watch);
    if (error)
        goto error;
    *session = s;
    return 0;
error:
    session_destroy(s);
    return error;
}

void session_destroy(struct session *s)
{
    if (!s)
        return;
    session_stop(s);
    watch_destroy(s->watch);
    if (session_of_fd[s->config.fd] == s)
        session_of_fd[s->config.fd] = NULL;
    reply_detach(s->config.fd);
    if (s->fuse)
        fuse_session_destroy(s->fuse);
    slots_destroy(s->slots);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s->thread);
    free(s);
}

struct session_request session_request(void)
{
    return current;
}

void session_drop_pages(struct session *session, uint64_t ino, uint64_t offset, uint64_t length)
{
    fuse_lowlevel_notify_inval_inode(session->fuse, ino, (off_t)offset, (off_t)length);
}

void session_drop_attributes(struct session *session, uint64_t ino)
{
    if (wait_initialised(session))                                   /* before, libfuse would lose it */
        fuse_lowlevel_notify_inval_inode(session->fuse, ino, -1, 0); /* a negative offset: no pages */
}

void session_resume(const struct session_request *request)
{
    if (request->session)
        slots_resume(request->session->slots, request->unique);
}
