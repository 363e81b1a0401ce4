/* A table of cuts.
 *
 *   state      becomes
 *   FREE       MAKING, by the first READ of its record
 *   MAKING     READY; FREE after an error: the next READ that waits for it tries again
 *   READY      MAKING, when its place is needed and nobody uses it
 *
 * Threads: any. */
#include "fs/control/record-cuts.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { CUTS = 16, LOOK_EVERY_MS = 50 };

enum cut_state { CUT_FREE, CUT_MAKING, CUT_READY };
struct cut_place {
    enum cut_state state;
    uint64_t stream, position;
    struct tar_cut *cut; /* READY */
    unsigned users;      /* READY */
    uint64_t used;       /* order of uses */
};

struct record_cuts {
    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t made;  /* a place is no longer MAKING */
    struct cut_place place[CUTS];
    uint64_t uses;
};

int record_cuts_create(struct record_cuts **cuts)
{
    struct record_cuts *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    cond_init(&c->made);
    *cuts = c;
    return 0;
}

void record_cuts_destroy(struct record_cuts *c)
{
    if (!c)
        return;
    for (int i = 0; i < CUTS; i++)
        free(c->place[i].cut);
    pthread_cond_destroy(&c->made);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* The place of this record, else the one that may be used for it; NULL: all are in use. */
static struct cut_place *find_place(struct record_cuts *c, const struct record_cuts_wish *wish)
{
    struct cut_place *oldest = NULL;
    for (int i = 0; i < CUTS; i++) {
        struct cut_place *p = &c->place[i];
        if (p->state != CUT_FREE && p->stream == wish->stream && p->position == wish->position)
            return p;
        bool idle = p->state == CUT_FREE || (p->state == CUT_READY && p->users == 0);
        if (idle && (!oldest || p->used < oldest->used))
            oldest = p;
    }
    if (oldest) {
        free(steal_pointer(oldest->cut));
        *oldest = (struct cut_place){.stream = wish->stream, .position = wish->position};
    }
    return oldest;
}

/* The caller holds the lock. Waits while the record's cut is being made. */
static int await_place(struct record_cuts *c, const struct record_cuts_wish *wish, struct cut_place **place)
{
    while ((*place = find_place(c, wish)) && (*place)->state == CUT_MAKING)
        if (!cond_wait_until(&c->made, &c->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND)) {
            pthread_mutex_unlock(&c->lock);
            bool gone = wish->gave_up(wish->gave_up_user);
            pthread_mutex_lock(&c->lock);
            if (gone)
                return -EINTR;
        }
    return 0;
}

/* The caller holds the lock, which is released meanwhile. */
static int make_place(struct record_cuts *c, const struct record_cuts_wish *wish, struct cut_place *p)
{
    p->state = CUT_MAKING;
    pthread_mutex_unlock(&c->lock);
    struct tar_cut *cut = NULL;
    int error = wish->make(wish->make_user, &cut);
    pthread_mutex_lock(&c->lock);
    p->state = error ? CUT_FREE : CUT_READY;
    p->cut = cut;
    pthread_cond_broadcast(&c->made);
    return error;
}

static int make_alone(const struct record_cuts_wish *wish, struct kept_cut *kept)
{
    struct tar_cut *cut;
    int error = wish->make(wish->make_user, &cut);
    if (!error)
        *kept = (struct kept_cut){cut, -1};
    return error;
}

int record_cuts_get(struct record_cuts *c, const struct record_cuts_wish *wish, struct kept_cut *kept)
{
    struct cut_place *p = NULL;
    if (!c)
        return make_alone(wish, kept);
    pthread_mutex_lock(&c->lock);
    int error = await_place(c, wish, &p);
    if (!error && p && p->state == CUT_FREE)
        error = make_place(c, wish, p);
    if (!error && p) {
        p->users++;
        p->used = ++c->uses;
        *kept = (struct kept_cut){p->cut, (int)(p - c->place)};
    }
    pthread_mutex_unlock(&c->lock);
    return error || p ? error : make_alone(wish, kept);
}

void record_cuts_put(struct record_cuts *c, struct kept_cut *kept)
{
    if (kept->place < 0) {
        free((void *)kept->cut);
        return;
    }
    LOCK_SCOPE(&c->lock);
    c->place[kept->place].users--;
}
