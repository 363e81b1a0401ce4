/* The server's end of the ring to its courier.
 *
 * Threads: any thread sends. LINK_THREADS of its own take what comes, one message at a time, and pass it to `take`,
 * side by side. One that finds nothing sleeps in epoll_wait on a descriptor that they share, edge-triggered, so that
 * each bell wakes one of them.
 *
 * A message that finds no room in the ring is kept, and sent before any later one. A courier that errs breaks the link:
 * then nothing is taken any more, and `alarm` is rung once, so that the conversation with the courier ends.
 *
 * References: an answer that lies in a slot of the ring has one, so has a load for another node. So the ring stays
 * mapped until both have ended. Who gives the last one back calls `gone`, which frees. */
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
    int (*take)(struct link *link, const struct ring_message *message); /* -EBADMSG: the courier errs */
    void (*gone)(struct link *link);
    int alarm; /* an eventfd, borrowed */

    pthread_mutex_t taking;      /* one thread at a time takes a message from the ring */
    pthread_mutex_t pushing;     /* one at a time puts one there; innermost */
    TAILQ_HEAD(, unsent) unsent; /* pushing */
    _Atomic bool waits;          /* `unsent` is not empty */

    _Atomic bool broken, stop;
    int sleep; /* epoll: the ring's bell and `ended` */
    int ended; /* eventfd */
    int threads;
    pthread_t thread[LINK_THREADS];
};

/* `take`, `gone` and `alarm` are set. With one reference. The ring is taken over, also when it fails; then fini. */
int link_init(struct link *link, struct ring *ring);
void link_fini(struct link *link); /* in `gone` */
int link_start(struct link *link); /* the threads */
void link_stop(struct link *link); /* joins them; by who started them, who has a reference */
void link_get(struct link *link);
void link_put(struct link *link);

int link_try(struct link *link, const struct ring_message *message);   /* -EAGAIN: no room now */
void link_send(struct link *link, const struct ring_message *message); /* later, where there is no room now */
bool link_flush(struct link *link);                                    /* false: some still wait */
bool link_is_broken(const struct link *link);

#endif
