/* The conversation with the courier, over STATE/courier; what is said in which order stands in attach.h.
 *
 * Threads: one, which listens, reads frames and answers them, and ends a world when the courier hangs up, errs, or the
 * mount ends. It computes directories, so it can be busy for a while; whoever waits for time waits for another thread.
 * Walks over all extents or files look now and then whether somebody still waits for the thread's work.
 *
 *   nobody ──▶ TALK_NEW ──HELLO──▶ TALK_GREETED ──WORLD──▶ TALK_READY ──LIVE──▶ TALK_LIVE
 *                     (CATALOG, HELLO again) │                                      ▲
 *                                            └────────────────RESUME────────────────┘ ROOM, DEAL, SETTLED
 *
 * One courier is talked to at a time; others are refused with EBUSY. */
#include "fs/world/talk-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { FRAME_SECONDS = 30, STRANGER_MS = 1000, WORDS = 512 };

static void said_fini(struct said *s)
{
    free(s->payload);
    for (int i = 0; i < ATTACH_FDS; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
}

/* -ECANCELED: the courier was told why. */
static int refuse_on(int socket, int error, const char *format, va_list args)
{
    char words[sizeof(uint32_t) + WORDS];
    uint32_t number = (uint32_t)-error;
    memcpy(words, &number, sizeof number);
    vsnprintf(words + sizeof number, WORDS, format, args);
    log_warning("a courier was refused: %s", words + sizeof number);
    attach_send(socket, ATTACH_REFUSED, words, sizeof number + strlen(words + sizeof number), NULL);
    return -ECANCELED;
}

int talk_refuse(struct talk *t, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int told = refuse_on(t->courier, error, format, args);
    va_end(args);
    return told;
}

static void __attribute__((format(printf, 3, 4))) refuse_stranger(int socket, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refuse_on(socket, error, format, args);
    va_end(args);
}

bool talk_is_over(struct talk *t)
{
    struct pollfd courier = {.fd = t->courier};
    return atomic_load(&t->stop) || atomic_load(&t->broken) || (poll(&courier, 1, 0) == 1 && courier.revents & POLLHUP);
}

/* The end of a world, or of a conversation before one. */
static void hang_up(struct talk *t, const char *why)
{
    bool live = t->state == TALK_LIVE;
    if (live)
        peers_leave(t->peers);
    if (t->link) {
        link_stop(t->link);
        link_put(t->link);
        t->link = NULL;
    }
    directory_close(t->computed);
    t->computed = NULL;
    if (live && !atomic_load(&t->stop))
        log_warning("%s: what other nodes keep is read from the source until they are joined again", why);
    if (t->courier >= 0)
        close(t->courier);
    t->courier = -1;
    t->state = TALK_NEW;
    atomic_store(&t->broken, false);
}

/* The thread. */

static void read_frame(struct talk *t)
{
    struct said s = {.fds = {-1, -1, -1}};
    int error = attach_receive(t->courier, &s.kind, &s.payload, &s.n, s.fds);
    if (!error)
        error = t->state == TALK_LIVE ? redeal_answer(t, &s) : join_answer(t, &s);
    said_fini(&s);
    if (error && error != -ECONNRESET && error != -ECANCELED)
        log_error("the conversation with the courier: %s", strerror(-error));
    if (error)
        hang_up(t, "the courier is gone");
}

static void limit(int socket, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/* Only what was read is answered: a socket that is closed with bytes unread takes the answer with it. */
static void turn_away(struct talk *t, int stranger)
{
    CLEANUP_CLOSE int socket = stranger;
    struct pollfd fd = {.fd = socket, .events = POLLIN};
    struct said s = {.fds = {-1, -1, -1}};
    limit(socket, 1);
    if (poll(&fd, 1, STRANGER_MS) == 1 && !attach_receive(socket, &s.kind, &s.payload, &s.n, s.fds))
        refuse_stranger(socket, -EBUSY, "%s is in a world already", t->peers->config.mountpoint);
    said_fini(&s);
}

static void accept_courier(struct talk *t)
{
    int socket = attach_accept(t->listening);
    if (socket < 0) {
        log_limited(LOG_LEVEL_WARNING, 1, "a courier was not let in: %s", strerror(-socket));
        return;
    }
    if (t->courier >= 0) {
        turn_away(t, socket);
        return;
    }
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    limit(socket, FRAME_SECONDS);
    t->courier = socket;
    t->process = (uint32_t)peer.pid;
    t->state = TALK_NEW;
}

static void hear_wake(struct talk *t)
{
    uint64_t count;
    (void)!read(t->wake, &count, sizeof count);
    if (atomic_load(&t->broken))
        hang_up(t, "the courier errs");
}

/* A courier that hangs up and comes again at once is two. */
static void *talk_main(void *argument)
{
    struct talk *t = argument;
    while (!atomic_load(&t->stop)) {
        struct pollfd fd[] = {
            {.fd = t->wake, .events = POLLIN},
            {.fd = t->courier, .events = POLLIN},
            {.fd = t->listening, .events = POLLIN},
        };
        if (poll(fd, 3, -1) < 0)
            continue;
        if (fd[0].revents)
            hear_wake(t);
        else if (fd[1].revents)
            read_frame(t);
        else if (fd[2].revents)
            accept_courier(t);
    }
    if (t->courier >= 0)
        attach_send(t->courier, ATTACH_END, NULL, 0, NULL);
    hang_up(t, "the mount has ended");
    return NULL;
}

/* From outside. */

int talk_create(struct peers *peers, struct talk **talk)
{
    struct talk *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->peers = peers;
    t->courier = -1;
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->listening = t->wake < 0 ? -errno : attach_listen(peers->config.state);
    if (t->listening < 0) {
        int error = t->listening;
        talk_destroy(t);
        return error;
    }
    *talk = t;
    return 0;
}

int talk_start(struct talk *t)
{
    int error = start_thread(&t->thread, talk_main, t, "peers-talk");
    t->running = !error;
    return error;
}

static void wake(struct talk *t)
{
    uint64_t one = 1;
    (void)!write(t->wake, &one, sizeof one);
}

void talk_break(struct talk *t)
{
    atomic_store(&t->broken, true);
    wake(t);
}

void talk_stop(struct talk *t)
{
    atomic_store(&t->stop, true);
    wake(t);
    if (t->running)
        pthread_join(t->thread, NULL);
    t->running = false;
}

void talk_destroy(struct talk *t)
{
    if (!t)
        return;
    int saved = errno;
    talk_stop(t);
    if (t->listening >= 0)
        close(t->listening);
    if (t->wake >= 0)
        close(t->wake);
    free(t);
    errno = saved;
}
