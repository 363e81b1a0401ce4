/* What the parts of the peers share. Not for others: they include peers.h.
 *
 *   talk.c    the conversation with the courier: makes a world and its link, and ends them; talk-inside.h has its parts
 *   link.c    the ring of a living world: threads that take from it, messages to it
 *   fetch.c   what this node asks others for
 *   serve.c   what others ask this node for
 *   peers.c   assembly, time, and what others see of it
 *
 * Locks, all held for moments only: peers->lock; fetches.lock; serves.lock; link->pushing. None is taken while another
 * is held, but `pushing`, which is innermost. Nobody calls the store with one. */
#ifndef FS_WORLD_INSIDE_H
#define FS_WORLD_INSIDE_H

#include "fs/store/pool.h"
#include "fs/world/extents.h"
#include "fs/world/fetch.h"
#include "fs/world/peers.h"
#include "fs/world/serve.h"
#include "fs/world/world.h"

#include <pthread.h>

enum { RING_THREADS = 4 };

/* A message that found no room in the ring. */
struct unsent {
    struct unsent *next;
    struct ring_message message;
};

/* A ring and what is in flight on it. Its memory is mapped until the last reference is gone: an answer that lies in a
 * slot has one, so has a load for another node. */
struct link {
    _Atomic uint32_t refs;
    struct peers *peers;
    struct world *world;
    struct ring ring;
    struct fetches fetches;
    struct serves serves;

    pthread_mutex_t taking;  /* one thread at a time takes a message */
    pthread_mutex_t pushing; /* one pushes one */
    struct unsent *unsent, **last_unsent; /* pushing */
    _Atomic bool waits;                   /* `unsent` is not empty */

    _Atomic bool broken, stop;
    int sleep; /* epoll: the ring's bell and `ended` */
    int ended; /* eventfd */
    int threads;
    pthread_t thread[RING_THREADS];
};

/* Takes the ring over, also when it fails. */
int link_create(struct peers *peers, struct world *world, struct ring *ring, struct link **link);
int link_start(struct link *link); /* the threads */
void link_stop(struct link *link); /* joins them; by whoever started them, before the last put */
struct link *link_get(struct link *link);
void link_put(struct link *link);
void link_break(struct link *link, const char *why); /* the courier errs: the conversation ends it */

int link_try(struct link *link, const struct ring_message *message);  /* -EAGAIN: no room now */
void link_push(struct link *link, const struct ring_message *message); /* sent later where there is no room now */
bool link_flush(struct link *link);                                   /* false: some still wait */

struct talk;

struct peers {
    struct peers_config config;
    struct store *store;     /* set by peers_fill, before there is a world */
    struct extents *extents; /* likewise */
    struct pool pool;        /* of codecs */
    struct talk *talk;

    pthread_mutex_t lock;
    pthread_cond_t changed;   /* for the time's thread: a link, none any more, or the end */
    struct world *world;      /* lock: the one of `link`, else the last one; NULL: there never was one */
    struct link *link;        /* lock: NULL: not joined */
    uint32_t courier;         /* lock: its process, while joined */
    struct node_news *heard;  /* lock: the last news of the world's nodes, when it ended; or NULL */
    uint64_t settled;         /* lock: the last round after which all agreed on who owns what had no owner */
    bool turning;             /* lock: the directory has changed, and staging not yet gone on with it */
    uint64_t deal_round, deal_asked; /* the time's thread's: for which round it asked for a deal last, and when */
    bool stop, timing;        /* lock; `timer` is to be joined */
    pthread_t timer;

    _Atomic uint64_t timeouts, bad;
};

struct world *peers_world(struct peers *peers); /* referenced, or NULL */
struct link *peers_link(struct peers *peers);   /* referenced, or NULL */
/* Join a world, its link running, and leave it. Both take no reference of the caller's. */
void peers_join(struct peers *peers, struct link *link, uint32_t courier);
void peers_leave(struct peers *peers);
void peers_remember(struct peers *peers, struct world *world); /* after a restart */
/* In a living world: from now on this one, which differs by its directory only. */
void peers_turn(struct peers *peers, struct world *world);
/* The deal after this round of staging is over; more of it is this node's where the world has turned. */
void peers_settle(struct peers *peers, uint64_t round, bool turned);
void peers_capacity(struct peers *peers, uint64_t *capacity, bool *opening);

int talk_create(struct peers *peers, struct talk **talk); /* listens */
int talk_start(struct talk *talk);
void talk_break(struct talk *talk); /* the link is broken: hang up */
void talk_stop(struct talk *talk);
void talk_destroy(struct talk *talk);

/* How a file is cut into values. */
static inline uint64_t values_of(const struct catalog *c, uint32_t file)
{
    return (catalog_file(c, file).size + VALUE_BYTES - 1) / VALUE_BYTES;
}

static inline uint32_t raw_of(const struct catalog *c, uint32_t file, uint64_t value)
{
    uint64_t left = catalog_file(c, file).size - value * VALUE_BYTES;
    return left < VALUE_BYTES ? (uint32_t)left : VALUE_BYTES;
}

int start_thread(pthread_t *thread, void *(*run)(void *), void *argument, const char *name); /* without signals */

#endif
