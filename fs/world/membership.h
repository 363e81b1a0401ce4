/* Which world this node is in: the one that lives now, or the last one that did, or none.
 *
 *   world   living
 *   NULL    NULL      there never was one
 *   set     NULL      its courier is gone: what others keep is read from the source
 *   set     set       joined
 *
 * Any thread looks; the conversation with the courier (talk.h) makes the changes. A thread that uses a world or what
 * lives of it has a reference, so that both can end at any moment. */
#ifndef FS_WORLD_MEMBERSHIP_H
#define FS_WORLD_MEMBERSHIP_H

#include "fs/world/fetch.h"
#include "fs/world/serve.h"

#include <sys/queue.h>

/* What lives while a courier is here: the ring to it, what is asked over it, and what is answered. */
struct living {
    struct link link; /* has the references */
    struct self *self;
    struct world *world; /* as it was joined: its layout may have turned since */
    struct fetches *fetches;
    struct serves *serves;
    uint64_t told; /* the timer's: when it told this node's news last, and the turn then */
    uint64_t turn;
};

/* With one reference; link_start lets it go. Takes the ring over, also when it fails. `alarm`: see link.h. */
int living_create(struct self *self, struct world *world, struct ring *ring, int alarm, struct living **living);
struct living *living_get(struct living *living); /* one more reference; NULL is NULL */
void living_put(struct living *living);

/* Somebody here waits for a turn. */
struct turn_waiter {
    struct turn turn;
    struct turn_record record; /* k = 0: it was not taken yet, */
    int32_t status;            /* and why not, */
    uint32_t node;             /* and where */
    LIST_ENTRY(turn_waiter) next;
};

struct membership {
    pthread_mutex_t lock; /* all below; held for moments only */
    pthread_cond_t
        changed; /* for who awaits a living world: there is one, or the end; for waiters: their turn's fate */
    LIST_HEAD(, turn_waiter) waiters;
    struct turn_outcome failed; /* the last turn that failed, since one was taken; status 0: none */
    uint64_t failed_at;
    struct world *world;
    struct living *living;
    uint32_t courier;        /* its process; 0: none */
    struct node_news *heard; /* the last news of the world's nodes, when its courier went; or NULL */
    uint64_t settled;        /* the last round of staging after which a turn for room was tried */
    bool turning;            /* the layout has changed, and staging not yet gone on with it */
    bool over;
    bool lost;               /* a server before this one took a layout that is not known here yet */
    struct world_mark *mark; /* what was taken last; NULL: it is noted nowhere */
    uint64_t changes;        /* of the world, and of what lives of it */
};

void membership_init(struct membership *m);
void membership_fini(struct membership *m);

/* Referenced, or NULL. */
struct world *membership_world(struct membership *m);
struct living *membership_living(struct membership *m);
/* The living world, or NULL at the end. Where there is one, waits so long before; where there is none, until there is.
 *  */
struct living *membership_await(struct membership *m, uint64_t nanoseconds);
void membership_end(struct membership *m);
/* The living world, once there is one and it has changed since `changes` said so; false: the end. Referenced. */
bool membership_next(struct membership *m, uint64_t *changes, struct world **world, struct living **living);
/* True: it has not changed after so many nanoseconds. */
bool membership_stays(struct membership *m, uint64_t changes, uint64_t nanoseconds);

/* After a restart: `world` is what was saved, or NULL. Where a newer layout was taken, it is lost until the courier
 * brings it. */
void membership_recall(struct membership *m, struct world *world);
/* Has the node taken another world since? A server that dies as it joins one may not have saved it. */
bool membership_is_other(struct membership *m, const uint8_t uuid[16]);
void membership_join(struct membership *m, struct living *living, uint32_t courier);
void membership_leave(struct membership *m); /* nothing is asked or answered any more; who waits goes to the source */
/* From now on this world, which the living one has turned to; until settled it is turning. */
void membership_turn(struct membership *m, struct world *world);
void membership_settle(struct membership *m, const struct turn *turn);
void membership_fail(struct membership *m, const struct turn_outcome *outcome); /* a turn has failed: logged once */

#endif
