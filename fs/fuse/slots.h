/* The private view that one server has of a lane (fs/wire/lane.h): takes slots, and finds what a server before left. */
#ifndef FS_FUSE_SLOTS_H
#define FS_FUSE_SLOTS_H

#include "fs/wire/lane.h"

#include <stdbool.h>

enum { SLOT_NONE = -1, POISON_DEATHS = 3 };

struct slots;

/* Sorts out what the server before left: see the picture. */
int slots_create(struct lane *lane, struct slots **slots);
void slots_destroy(struct slots *slots);
size_t slots_count(const struct slots *slots); /* all there are */

/* A free slot, made ready to be read into. Waits for one; SLOT_NONE after slots_stop. */
int slots_take(struct slots *slots);
void slots_ready(struct slots *slots, int slot); /* the same for one that the caller has kept */
void slots_put(struct slots *slots, int slot);   /* not read into, or answered without begin and end */
void slots_stop(struct slots *slots);

/* A request that a server before left, or SLOT_NONE. Those that were running when a server died are given out one at a
 * time, so that a poisonous one is found out alone. */
int slots_replay(struct slots *slots);
unsigned slots_deaths(const struct slots *slots, int slot);
/* Slots that a dying server may still be reading into. Returns one that turned out to have a request (hand it on as if
 * from slots_replay), or SLOT_NONE; `left` says how many are still open. */
int slots_late(struct slots *slots, int *left);
int slots_late_count(struct slots *slots);

/* Around the handling of the request in a slot. slots_end returns true when it has been answered and the slot is the
 * caller's again; false: it is parked, or just being answered by another thread, and no longer the caller's. */
void slots_begin(struct slots *slots, int slot);
bool slots_end(struct slots *slots, int slot);
/* The reply to `unique` has been written, by any thread. False: no slot has it. */
bool slots_answered(struct slots *slots, uint64_t unique);
/* Another thread goes on with a request that its handler has left unanswered: a server that dies from now on until the
 * answer died of it. */
void slots_resume(struct slots *slots, uint64_t unique);
/* An INTERRUPT for `unique` has come. False: that is not in progress, not yet or no longer. */
bool slots_interrupt(struct slots *slots, uint64_t unique);

/* A request that is in progress: begun, and not answered. */
struct slots_request {
    uint64_t unique, since;
    uint32_t asker; /* the thread that waits for it, as this pid namespace sees it; 0: it does not */
    bool busy;      /* its handler has not returned */
    bool interrupted;
};
/* What is in progress at `now`: fills `seen`, which has room for all slots, and returns how many. */
int slots_look(struct slots *slots, uint64_t now, struct slots_request *seen);

#endif
