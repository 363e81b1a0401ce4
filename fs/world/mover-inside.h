/* Shared by the files of the mover: mover.c counts and directs a move, mover-pull.c pulls extents, mover-drop.c drops
 * extents and finds room. */
#ifndef FS_WORLD_MOVER_INSIDE_H
#define FS_WORLD_MOVER_INSIDE_H

#include "fs/base/clock.h"
#include "fs/world/mover.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    MOVER_STEP = 4096, /* extents between two checks for the end */
    SOON_MS = 20,
    LATER_MS = 1000,
};

struct mover {
    struct self *self;
    struct membership *membership;
    pthread_t thread;
    bool runs;
    atomic_bool stop;

    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t back;  /* signalled when pulls have ended */
    uint8_t uuid[16];     /* of the world that `moved` and `news` describe */
    uint64_t k, moved;
    struct move_news news;
    uint64_t began, took;                         /* took: 0 while bytes are to come */
    uint64_t sent_samples, sent_bytes, rewritten; /* before the turn */
    uint32_t number;                              /* of the current pulls; see leave_pulls */
    uint64_t out;                                 /* requested bytes that have not arrived */
    int loads;
    uint64_t heard;         /* when the last pull was requested or ended */
    bool cramped, final;    /* cramped: a load found no room. final: then count it as refused */
    uint64_t first_cramped; /* an extent's number */
    uint64_t first_failed;  /* number of the first extent that could not be fetched for now; UINT64_MAX: none */
};

/* One move; used by the mover's thread only. */
struct course {
    struct mover *mover;
    struct world *world;
    struct living *living;
    uint64_t changes; /* of the membership: if this number changes, the move is over */
    uint64_t extents;
    uint64_t *foreign; /* one bit per extent */
    uint64_t foreigners;
    uint64_t lacking; /* bytes that are owned and not cached */
    bool looked;      /* the last round of dropping looked at all foreign extents, */
    uint64_t asked;   /* and asked this many questions */
    uint64_t rests;   /* the next round may begin at this time */
    uint64_t paid;    /* until this time, earlier pulls use up exchange_rate */
};

static inline bool is_over(const struct course *c)
{
    return !membership_stays(c->mover->membership, c->changes, 0);
}

/* False: this move, or the mover, has ended. */
static inline bool pause_course(struct course *c, uint64_t milliseconds)
{
    return membership_stays(c->mover->membership, c->changes, milliseconds * MILLISECOND);
}

/* The owner by the layout of this world. */
static inline uint32_t owner_now(const struct course *c, uint64_t extent)
{
    return layout_owner(c->world->layout, c->world->group, extent);
}

static inline uint32_t owner_before(const struct course *c, uint64_t extent)
{
    const struct world *w = c->world;
    return w->before ? layout_owner(w->before, w->group, extent) : NO_OWNER;
}

static inline bool is_to_come(const struct course *c, uint64_t extent)
{
    uint32_t before = owner_before(c, extent);
    return owner_now(c, extent) == c->world->me && before != c->world->me && before != NO_OWNER;
}

/* Pull missing extents from this one on, as far as there is room, and wait for all of them. */
int pull_pass(struct course *c, uint64_t from);
/* False: there will be no room. */
bool find_room(struct course *c);
/* Drop foreign extents until none is left that should go, or the next turn begins. */
void drop_all(struct course *c);

#endif
