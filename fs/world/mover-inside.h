/* One move, and what the files of the mover share: mover.c counts and conducts, mover-pull.c pulls what is to come,
 * mover-drop.c drops what other nodes own and have stored, and finds room. */
#ifndef FS_WORLD_MOVER_INSIDE_H
#define FS_WORLD_MOVER_INSIDE_H

#include "fs/base/clock.h"
#include "fs/world/mover.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    MOVER_STEP = 4096, /* extents between two looks at whether it is over */
    SOON_MS = 20,
    LATER_MS = 1000,
};

struct mover {
    struct self *self;
    struct membership *membership;
    pthread_t thread;
    bool runs;
    atomic_bool stop;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t back;  /* pulls have ended */
    uint8_t uuid[16];     /* of the world that `moved` and `news` are about */
    uint64_t k, moved;
    struct move_news news;
    uint64_t began, took;                         /* took: 0 while bytes are to come */
    uint64_t sent_samples, sent_bytes, rewritten; /* before the turn */
    uint32_t number;                              /* of the pull */
    uint64_t out;                                 /* bytes that were asked for and have not ended */
    int loads;
    uint64_t heard;         /* when one was asked for, or ended, last */
    bool cramped, final;    /* a load found no room; then it is counted, and no more is done about it */
    uint64_t first_cramped; /* extent */
    uint64_t first_failed;  /* extent that could not be had just now; UINT64_MAX: none */
};

/* One move, by the thread. */
struct course {
    struct mover *mover;
    struct world *world;
    struct living *living;
    uint64_t changes; /* of the membership: another number, and it is over */
    uint64_t extents;
    uint64_t *foreign; /* bits */
    uint64_t foreigners;
    uint64_t lacking; /* bytes that are owned and not held */
    bool looked;      /* the last round of dropping looked at all, */
    uint64_t asked;   /* and how many questions it asked */
    uint64_t rests;   /* until when there should be no other */
    uint64_t paid;    /* until when the rate is used up */
};

static inline bool is_over(const struct course *c)
{
    return !membership_stays(c->mover->membership, c->changes, 0);
}

/* False: it is over, for good or for this move. */
static inline bool pause_course(struct course *c, uint64_t milliseconds)
{
    return membership_stays(c->mover->membership, c->changes, milliseconds * MILLISECOND);
}

/* Who owns it now, or did before. */
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

/* Pulls what is to come from that extent on, as far as there is room, and waits for all of it. */
int pull_pass(struct course *c, uint64_t from);
/* False: there will be no room. */
bool find_room(struct course *c);
/* Until nothing is left that should go, or the next turn comes. */
void drop_all(struct course *c);

#endif
