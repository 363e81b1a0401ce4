/* The server's end of the ring to its courier.
 *
 * Threads: any thread sends. LINK_THREADS threads receive concurrently, each one message at a time, and pass it to
 * `take`. A thread without a message sleeps in epoll_wait on a shared, edge-triggered descriptor, so that each bell
 * wakes one of them.
 *
 * A message for which the ring has no room is queued, and sent before any later one. A courier that breaks the protocol
 * breaks the link: nothing is received any more, and `alarm` is rung once, so that the conversation with the courier
 * ends.
 *
 * References: each answer in a slot of the ring has one, and so has each load for another node. So the ring stays
 * mapped until these have ended. Returning the last reference calls `gone`, which frees the link. */
#ifndef FS_WORLD_LINK_H
#define FS_WORLD_LINK_H

#include "fs/wire/ring.h"

#include <pthread.h>
#include <sys/queue.h>

enum { LINK_THREADS = 4 };

struct unsent;

struct link {
    _Atomic uint32_t refs;
    struct ring ring;
    int (*take)(struct link *link, const struct ring_message *message); /* -EBADMSG: the courier broke the protocol */
    void (*gone)(struct link *link);
    int alarm; /* an eventfd; borrowed */

    pthread_mutex_t taking;      /* held to take one message from the ring */
    pthread_mutex_t pushing;     /* held to put one message into the ring; innermost lock */
    TAILQ_HEAD(, unsent) unsent; /* guarded by `pushing` */
    _Atomic bool waits;          /* `unsent` is not empty */

    _Atomic bool broken, stop;
    int sleep; /* epoll: the ring's bell and `ended` */
    int ended; /* eventfd */
    int threads;
    pthread_t thread[LINK_THREADS];
};

/* `take`, `gone` and `alarm` must be set. The link starts with one reference, and owns the ring even if this fails:
 * then call link_fini. */
int link_init(struct link *link, struct ring *ring);
void link_fini(struct link *link); /* called by `gone` */
int link_start(struct link *link); /* starts the threads */
/* joins the threads; called by the thread that started them, which has a reference */
void link_stop(struct link *link);
void link_get(struct link *link);
void link_put(struct link *link);

int link_try(struct link *link, const struct ring_message *message); /* -EAGAIN: no room now */
/* queues the message if there is no room now */
void link_send(struct link *link, const struct ring_message *message);
bool link_flush(struct link *link); /* false: messages are still queued */
bool link_is_broken(const struct link *link);

#endif
