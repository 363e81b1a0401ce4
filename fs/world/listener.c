/* Threads: one. It listens, reads and answers frames, and ends a world when the courier hangs up or breaks the
 * protocol, or when the mount ends. It also computes layouts, which may take seconds, so another thread handles
 * timeouts. */
#include "fs/world/listener.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/base/thread.h"
#include "fs/world/joining.h"
#include "fs/world/turning.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { FRAME_SECONDS = 30, STRANGER_MS = 1000, SAVE_AGAIN_MS = 5000 };

struct courier_listener {
    int socket;
    bool running;
    pthread_t thread;
    struct talk talk;
};

static int receive_frame(int courier, struct talk_frame *f)
{
    memset(f, 0, sizeof *f);
    memset(f->fds, 0xff, sizeof f->fds);
    return message_receive(courier, &f->kind, &f->payload, &f->n, f->fds);
}

static void frame_fini(struct talk_frame *f)
{
    free(f->payload);
    for (int i = 0; i < MESSAGE_FDS; i++)
        if (f->fds[i] >= 0)
            close(f->fds[i]);
}

static void answer_frame(struct talk *t)
{
    struct talk_frame f;
    int error = receive_frame(t->courier, &f);
    if (!error)
        error = t->state == TALK_LIVE ? turning_answer(t, &f) : joining_answer(t, &f);
    frame_fini(&f);
    if (error && error != -ECONNRESET && error != -ECANCELED)
        log_error("talk to the courier: %s", strerror(-error));
    if (error)
        talk_hang_up(t, "the courier has ended");
}

static void limit_waiting(int socket, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/* Read before answering: closing a socket with unread bytes discards the answer. */
static void turn_away(const struct talk *t, int stranger)
{
    CLEANUP_CLOSE int socket = stranger;
    struct pollfd fd = {.fd = socket, .events = POLLIN};
    struct talk_frame f;
    limit_waiting(socket, 1);
    if (ready_wait(&fd, 1, STRANGER_MS) != 1)
        return;
    if (!receive_frame(socket, &f))
        talk_refuse(socket, -EBUSY, "%s is already in a world", t->self->config.mountpoint);
    frame_fini(&f);
}

static void accept_courier(struct courier_listener *l)
{
    struct talk *t = &l->talk;
    int socket = message_accept(l->socket);
    if (socket < 0) {
        log_limited(LOG_LEVEL_WARNING, 1, "the server rejected a courier: %s", strerror(-socket));
        return;
    }
    if (t->courier >= 0) {
        turn_away(t, socket);
        return;
    }
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    limit_waiting(socket, FRAME_SECONDS);
    t->courier = socket;
    t->process = (uint32_t)peer.pid;
}

/* The world that rang may have ended meanwhile, and another courier may be connected. */
static void hear_wake(struct talk *t)
{
    eventfd_t count;
    eventfd_read(t->wake, &count);
    if (t->living && link_is_broken(&t->living->link))
        talk_hang_up(t, "the courier broke the protocol");
}

/* Saves again what could not be saved, each SAVE_AGAIN_MS from `*at` on. Returns milliseconds until then; -1: never. */
static int save_again(struct talk *t, uint64_t *at)
{
    uint64_t now = clock_now();
    bool unsaved = atomic_load(&t->self->unsaved);
    if (unsaved && now >= *at)
        talk_save(t);
    if (!unsaved || now >= *at)
        *at = now + SAVE_AGAIN_MS * MILLISECOND;
    return unsaved ? (int)((*at - now) / MILLISECOND) + 1 : -1;
}

/* A courier that hangs up and connects again at once counts as two. */
static void *listen_and_talk(void *argument)
{
    struct courier_listener *l = argument;
    struct talk *t = &l->talk;
    uint64_t save_at = 0;
    while (!atomic_load(&t->stop)) {
        struct pollfd fd[] = {
            {.fd = t->wake, .events = POLLIN},
            {.fd = t->courier, .events = POLLIN},
            {.fd = l->socket, .events = POLLIN},
        };
        if (ready_wait(fd, 3, save_again(t, &save_at)) <= 0)
            continue;
        if (fd[0].revents)
            hear_wake(t);
        else if (fd[1].revents)
            answer_frame(t);
        else if (fd[2].revents)
            accept_courier(l);
    }
    if (t->courier >= 0)
        message_send(t->courier, MESSAGE_END, NULL, 0, NULL);
    talk_hang_up(t, "the mount has ended");
    return NULL;
}

int listener_create(struct self *self, struct membership *membership, struct courier_listener **listener)
{
    struct courier_listener *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->talk = (struct talk){.self = self, .membership = membership, .courier = -1};
    l->talk.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = l->talk.wake < 0 ? -errno : 0;
    l->socket = error ? -1 : message_listen(self->config.state);
    /* A mount that is up survives the loss of its state directory. */
    if (!error && l->socket < 0 && !self->config.restarted)
        error = l->socket;
    if (error) {
        listener_destroy(l);
        return error;
    }
    if (l->socket < 0)
        log_error("listen in %s: %s: couriers cannot find this mount", self->config.state, strerror(-l->socket));
    *listener = l;
    return 0;
}

int listener_start(struct courier_listener *l)
{
    int error = thread_create(&l->thread, "peers-talk", listen_and_talk, l);
    l->running = !error;
    return error;
}

void listener_stop(struct courier_listener *l)
{
    atomic_store(&l->talk.stop, true);
    eventfd_write(l->talk.wake, 1);
    if (l->running)
        pthread_join(l->thread, NULL);
    l->running = false;
}

void listener_destroy(struct courier_listener *l)
{
    if (!l)
        return;
    KEEP_ERRNO;
    listener_stop(l);
    if (l->socket >= 0)
        close(l->socket);
    if (l->talk.wake >= 0)
        close(l->talk.wake);
    free(l);
}
