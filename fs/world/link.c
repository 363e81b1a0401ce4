/* The ring of a living world.
 *
 * Threads: RING_THREADS of them take messages, one at a time, and do what they ask for. One that finds none sleeps in
 * epoll_wait on a descriptor that they share, edge-triggered, so that each bell wakes one of them. Any thread pushes. */
#include "fs/world/inside.h"

#include "fs/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Sending. */

static int send_unsent(struct link *l)
{
    int error = 0;
    for (struct unsent *u; !error && (u = l->unsent);) {
        error = ring_push(&l->ring.shared->to_courier, l->ring.bell_courier, &u->message);
        if (error)
            break;
        l->unsent = u->next;
        free(u);
    }
    atomic_store(&l->waits, l->unsent != NULL);
    return error;
}

static int push(struct link *l, const struct ring_message *message)
{
    int error = l->unsent ? send_unsent(l) : 0;
    return error ? error : ring_push(&l->ring.shared->to_courier, l->ring.bell_courier, message);
}

static int keep_unsent(struct link *l, const struct ring_message *message)
{
    struct unsent *u = malloc(sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct unsent){NULL, *message};
    if (!l->unsent)
        l->last_unsent = &l->unsent;
    *l->last_unsent = u;
    l->last_unsent = &u->next;
    atomic_store(&l->waits, true);
    return 0;
}

int link_try(struct link *l, const struct ring_message *message)
{
    pthread_mutex_lock(&l->pushing);
    int error = push(l, message);
    pthread_mutex_unlock(&l->pushing);
    if (error == -EBADMSG)
        link_break(l, "its end of the ring is nowhere");
    return error;
}

/* A reply that is lost would be waited for without end. */
void link_push(struct link *l, const struct ring_message *message)
{
    pthread_mutex_lock(&l->pushing);
    int error = push(l, message);
    if (error == -EAGAIN)
        error = keep_unsent(l, message);
    pthread_mutex_unlock(&l->pushing);
    if (error)
        link_break(l, error == -ENOMEM ? "no memory for what it does not take" : "its end of the ring is nowhere");
}

bool link_flush(struct link *l)
{
    if (!atomic_load(&l->waits))
        return true;
    pthread_mutex_lock(&l->pushing);
    send_unsent(l);
    bool all = !l->unsent;
    pthread_mutex_unlock(&l->pushing);
    return all;
}

void link_break(struct link *l, const char *why)
{
    if (atomic_exchange(&l->broken, true))
        return;
    log_error("the courier errs: %s", why);
    talk_break(l->peers->talk);
}

/* Receiving. */

static int obey(struct link *l, const struct ring_message *m)
{
    const struct peers_config *c = &l->peers->config;
    if (m->value < WORLD_STAGE || m->value > WORLD_UMOUNT)
        return -EBADMSG;
    c->command(c->user, (enum world_command)m->value, m->token);
    return 0;
}

static int handle(struct link *l, const struct ring_message *m)
{
    switch (m->kind) {
    case RING_FETCHED:
        return fetch_answered(l, m);
    case RING_SERVE:
        return serve_asked(l, m);
    case RING_SENT:
        return serve_sent(l, m);
    case RING_GONE:
        return fetch_lost(l, m->node);
    case RING_COMMAND:
        return obey(l, m);
    default:
        return -EBADMSG;
    }
}

static void await_bell(struct link *l)
{
    struct epoll_event event;
    while (epoll_wait(l->sleep, &event, 1, -1) < 0 && errno == EINTR)
        ;
}

/* From a broken ring nothing is taken until its end. */
static void sleep_without_messages(struct link *l)
{
    struct ring_queue *q = &l->ring.shared->to_server;
    if (atomic_load(&l->broken)) {
        await_bell(l);
    } else if (ring_may_sleep(q)) {
        await_bell(l);
        ring_awake(q, -1);
    }
}

static void *take_messages(void *argument)
{
    struct link *l = argument;
    while (!atomic_load(&l->stop)) {
        struct ring_message m;
        pthread_mutex_lock(&l->taking);
        int error = atomic_load(&l->broken) ? -EAGAIN : ring_take(&l->ring.shared->to_server, &m);
        pthread_mutex_unlock(&l->taking);
        if (!error)
            error = handle(l, &m);
        else if (error == -EAGAIN)
            sleep_without_messages(l);
        if (error == -EBADMSG)
            link_break(l, "it sent what cannot be");
    }
    return NULL;
}

/* Beginning and end. */

static int make_sleep(struct link *l)
{
    l->sleep = epoll_create1(EPOLL_CLOEXEC);
    l->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event bell = {.events = EPOLLIN | EPOLLET}, end = {.events = EPOLLIN};
    if (l->sleep < 0 || l->ended < 0 || epoll_ctl(l->sleep, EPOLL_CTL_ADD, l->ring.bell_server, &bell) < 0 ||
        epoll_ctl(l->sleep, EPOLL_CTL_ADD, l->ended, &end) < 0)
        return -errno;
    return 0;
}

int link_create(struct peers *peers, struct world *world, struct ring *ring, struct link **link)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l) {
        ring_close(ring);
        return -ENOMEM;
    }
    l->refs = 1;
    l->peers = peers;
    l->world = world_get(world);
    l->ring = *ring;
    l->sleep = l->ended = -1;
    pthread_mutex_init(&l->taking, NULL);
    pthread_mutex_init(&l->pushing, NULL);
    int error = fetches_init(l);
    if (!error)
        error = serves_init(l);
    if (!error)
        error = make_sleep(l);
    if (error) {
        link_put(l);
        return error;
    }
    *link = l;
    return 0;
}

int link_start(struct link *l)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = cores < 2 ? 2 : cores < RING_THREADS ? (int)cores : RING_THREADS;
    for (int i = 0; i < threads; i++) {
        int error = start_thread(&l->thread[i], take_messages, l, "ring");
        if (error) {
            link_stop(l);
            return error;
        }
        l->threads++;
    }
    return 0;
}

/* Commands of a courier that is gone: what else it sent is over with it. */
static void obey_last(struct link *l)
{
    struct ring_message m;
    while (!atomic_load(&l->broken) && !ring_take(&l->ring.shared->to_server, &m))
        if (m.kind == RING_COMMAND)
            obey(l, &m);
}

void link_stop(struct link *l)
{
    bool ran = l->threads > 0;
    uint64_t one = 1;
    atomic_store(&l->stop, true);
    (void)!write(l->ended, &one, sizeof one);
    while (l->threads)
        pthread_join(l->thread[--l->threads], NULL);
    if (ran)
        obey_last(l);
}

struct link *link_get(struct link *l)
{
    if (l)
        atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void link_put(struct link *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    fetches_fini(l);
    serves_fini(l);
    for (struct unsent *u; (u = l->unsent);) {
        l->unsent = u->next;
        free(u);
    }
    if (l->sleep >= 0)
        close(l->sleep);
    if (l->ended >= 0)
        close(l->ended);
    ring_close(&l->ring);
    world_put(l->world);
    pthread_mutex_destroy(&l->taking);
    pthread_mutex_destroy(&l->pushing);
    free(l);
}
