#include "fs/world/link.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A message for which the ring had no room. */
struct unsent {
    TAILQ_ENTRY(unsent) same_queue;
    struct ring_message message;
};

static void link_break(struct link *l, const char *why)
{
    if (atomic_exchange(&l->broken, true))
        return;
    log_error("the courier broke the protocol: %s", why);
    eventfd_write(l->alarm, 1);
}

bool link_is_broken(const struct link *l)
{
    return atomic_load(&l->broken);
}

/* --- sending --- */

static int put_into_ring(struct link *l, const struct ring_message *message)
{
    return ring_push(&l->ring.shared->to_courier, l->ring.fd[RING_BELL_COURIER], message);
}

/* With `pushing`, as the next two functions. */
static int send_unsent(struct link *l)
{
    int error = 0;
    for (struct unsent *first; !error && (first = TAILQ_FIRST(&l->unsent));) {
        error = put_into_ring(l, &first->message);
        if (error)
            break;
        TAILQ_REMOVE(&l->unsent, first, same_queue);
        free(first);
    }
    atomic_store(&l->waits, !TAILQ_EMPTY(&l->unsent));
    return error;
}

static int send_now(struct link *l, const struct ring_message *message)
{
    int error = TAILQ_EMPTY(&l->unsent) ? 0 : send_unsent(l);
    return error ? error : put_into_ring(l, message);
}

static int send_later(struct link *l, const struct ring_message *message)
{
    struct unsent *unsent = malloc(sizeof *unsent);
    if (!unsent)
        return -ENOMEM;
    unsent->message = *message;
    TAILQ_INSERT_TAIL(&l->unsent, unsent, same_queue);
    atomic_store(&l->waits, true);
    return 0;
}

int link_try(struct link *l, const struct ring_message *message)
{
    pthread_mutex_lock(&l->pushing);
    int error = send_now(l, message);
    pthread_mutex_unlock(&l->pushing);
    if (error == -EBADMSG)
        link_break(l, "its position in the ring is invalid");
    return error;
}

/* Somebody may wait for this reply without end, so it is sent later if the ring has no room. */
void link_send(struct link *l, const struct ring_message *message)
{
    pthread_mutex_lock(&l->pushing);
    int error = send_now(l, message);
    if (error == -EAGAIN)
        error = send_later(l, message);
    pthread_mutex_unlock(&l->pushing);
    if (error)
        link_break(l, error == -ENOMEM ? "out of memory for messages that it does not take"
                                       : "its position in the ring is invalid");
}

bool link_flush(struct link *l)
{
    if (!atomic_load(&l->waits))
        return true;
    LOCK_SCOPE(&l->pushing);
    send_unsent(l);
    return TAILQ_EMPTY(&l->unsent);
}

/* --- receiving --- */

/* Nothing is taken from a broken ring until it ends. */
static void sleep_without_messages(struct link *l)
{
    struct ring_queue *q = &l->ring.shared->to_server;
    struct epoll_event event;
    bool broken = link_is_broken(l);
    if (!broken && !ring_may_sleep(q))
        return;
    while (epoll_wait(l->sleep, &event, 1, -1) < 0 && errno == EINTR)
        ;
    if (!broken)
        ring_awake(q);
}

static void *take_messages(void *argument)
{
    struct link *l = argument;
    while (!atomic_load(&l->stop)) {
        struct ring_message m;
        pthread_mutex_lock(&l->taking);
        int error = link_is_broken(l) ? -EAGAIN : ring_take(&l->ring.shared->to_server, &m);
        pthread_mutex_unlock(&l->taking);
        if (!error)
            error = l->take(l, &m);
        else if (error == -EAGAIN)
            sleep_without_messages(l);
        if (error == -EBADMSG)
            link_break(l, "it sent an invalid message");
    }
    return NULL;
}

/* When the courier has ended, only commands still count: the rest of its messages has lost its purpose. */
static void take_last_commands(struct link *l)
{
    struct ring_message m;
    while (!link_is_broken(l) && !ring_take(&l->ring.shared->to_server, &m))
        if (m.kind == RING_COMMAND)
            l->take(l, &m);
}

/* --- beginning and end --- */

int link_init(struct link *l, struct ring *ring)
{
    struct epoll_event bell = {.events = EPOLLIN | EPOLLET}, end = {.events = EPOLLIN};
    l->refs = 1;
    l->ring = *ring;
    TAILQ_INIT(&l->unsent);
    pthread_mutex_init(&l->taking, NULL);
    pthread_mutex_init(&l->pushing, NULL);
    l->sleep = epoll_create1(EPOLL_CLOEXEC);
    l->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->sleep < 0 || l->ended < 0 || epoll_ctl(l->sleep, EPOLL_CTL_ADD, l->ring.fd[RING_BELL_SERVER], &bell) < 0 ||
        epoll_ctl(l->sleep, EPOLL_CTL_ADD, l->ended, &end) < 0)
        return -errno;
    return 0;
}

void link_fini(struct link *l)
{
    for (struct unsent *first; (first = TAILQ_FIRST(&l->unsent));) {
        TAILQ_REMOVE(&l->unsent, first, same_queue);
        free(first);
    }
    if (l->sleep >= 0)
        close(l->sleep);
    if (l->ended >= 0)
        close(l->ended);
    ring_close(&l->ring);
    pthread_mutex_destroy(&l->taking);
    pthread_mutex_destroy(&l->pushing);
}

int link_start(struct link *l)
{
    unsigned cores = processors_count();
    int threads = cores < 2 ? 2 : cores < LINK_THREADS ? (int)cores : LINK_THREADS;
    l->threads = threads_start(l->thread, threads, "ring", take_messages, l);
    if (l->threads == threads)
        return 0;
    link_stop(l);
    return -EAGAIN;
}

void link_stop(struct link *l)
{
    int threads = l->threads;
    atomic_store(&l->stop, true);
    eventfd_write(l->ended, 1);
    threads_join(l->thread, threads);
    l->threads = 0;
    if (threads)
        take_last_commands(l);
}

void link_get(struct link *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
}

void link_put(struct link *l)
{
    if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1)
        l->gone(l);
}
