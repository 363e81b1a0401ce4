/* Membership: which world this node is in: the living one, the last one, or none.
 *
 *   world   living
 *   NULL    NULL      there never was a world
 *   set     NULL      the courier is gone: other nodes' data is read from the source
 *   set     set       joined
 *
 * Any thread may look. Only the conversation with the courier (talk.h) makes changes. A thread that uses a world, or
 * its living part, holds a reference, so that both can end at any time. */
#ifndef FS_WORLD_MEMBERSHIP_H
#define FS_WORLD_MEMBERSHIP_H

#include "fs/world/fetch.h"
#include "fs/world/serve.h"

#include <sys/queue.h>

/* The living part of a world, while a courier is connected: the ring, the questions to other nodes, and the answers for
 * them. */
struct living {
    struct link link; /* holds the references */
    struct self *self;
    struct world *world; /* as of the join: the layout may have turned since */
    struct fetches *fetches;
    struct serves *serves;
    uint64_t told; /* only used by the timer: when it last sent this node's news, and the turn in them */
    uint64_t turn;
};

/* Create with one reference; link_start starts it. Owns the ring, also on failure. `alarm`: see link.h. */
int living_create(struct self *self, struct world *world, struct ring *ring, int alarm, struct living **living);
struct living *living_get(struct living *living); /* adds a reference; NULL stays NULL */
void living_put(struct living *living);
static inline void cleanup_living_(struct living **living)
{
    living_put(*living);
}
#define CLEANUP_LIVING __attribute__((cleanup(cleanup_living_)))

/* A thread that waits for a turn. */
struct turn_waiter {
    struct turn turn;
    struct turn_record record; /* k = 0: not taken yet */
    int32_t status;            /* why not */
    uint32_t node;             /* number of the node where it failed */
    LIST_ENTRY(turn_waiter) next;
};

struct membership {
    pthread_mutex_t lock; /* guards all fields below; held briefly */
    pthread_cond_t
        changed; /* signalled when a world lives, at the end, and when the turn of a waiter was taken or failed */
    LIST_HEAD(, turn_waiter) waiters;
    struct turn_outcome failed; /* the last turn that failed since one was taken; status 0: none */
    uint64_t failed_at;
    struct world *world;
    struct living *living;
    uint32_t courier;        /* its process id; 0: none */
    struct node_news *heard; /* last news of the world's nodes before the courier ended; or NULL */
    uint64_t settled;        /* the last round of staging after which a turn for room was tried */
    bool turning;            /* the layout has changed, and staging has not resumed yet */
    bool over;
    bool lost;               /* a previous server took a layout that this one does not know yet */
    struct world_mark *mark; /* the world that was taken last; NULL: not recorded */
    uint64_t changes;        /* number of changes of the world and its living part */
};

void membership_init(struct membership *m);
void membership_fini(struct membership *m);

/* A reference, or NULL. */
struct world *membership_world(struct membership *m);
struct living *membership_living(struct membership *m);
/* The living world, or NULL at the end. If a world lives, first sleeps for that long; otherwise waits for one. */
struct living *membership_await(struct membership *m, uint64_t nanoseconds);
void membership_end(struct membership *m);
/* Wait until there is a living world and `changes` is out of date. The results are references. False: the end. */
bool membership_next(struct membership *m, uint64_t *changes, struct world **world, struct living **living);
/* True: nothing has changed after that time. */
bool membership_stays(struct membership *m, uint64_t changes, uint64_t nanoseconds);

/* After a restart: `world` was saved by the previous server, or is NULL. If the node took a newer layout, the
 * membership is `lost` until the courier brings it. */
void membership_recall(struct membership *m, struct world *world);
/* Has the node joined another world since? A server that died during a join may not have saved it. */
bool membership_is_other(struct membership *m, const uint8_t uuid[16]);
void membership_join(struct membership *m, struct living *living, uint32_t courier);
void membership_leave(struct membership *m); /* no more questions or answers; waiting reads go to the source */
/* The living world has turned to this one. It counts as turning until settled. */
void membership_turn(struct membership *m, struct world *world);
void membership_settle(struct membership *m, const struct turn *turn);
void membership_fail(struct membership *m, const struct turn_outcome *outcome); /* a turn has failed; logged once */

#endif
