/* A server's private view of a lane (fs/wire/lane.h): it takes slots, and finds what earlier servers left. */
#ifndef FS_FUSE_SLOTS_H
#define FS_FUSE_SLOTS_H

#include "fs/wire/lane.h"

#include <stdbool.h>

enum { SLOT_NONE = -1 };

/* What the death of a server adds to the blame of each request that was in progress. One that was killed from outside
 * says little: somebody kills servers, or memory is short. */
enum { BLAME_KILLED = 1, BLAME_DIED = 4, BLAME_MOST = 3 * BLAME_DIED };

struct slots;

/* Sorts the slots that earlier servers left; see the picture in lane.h. `blame`: for the death of the last one. */
int slots_create(struct lane *lane, unsigned blame, struct slots **slots);
void slots_destroy(struct slots *slots);
size_t slots_count(const struct slots *slots); /* number of all slots */

/* A free slot, prepared for reading. Waits for one; SLOT_NONE after slots_stop. */
int slots_take(struct slots *slots);
void slots_ready(struct slots *slots, int slot); /* the same for a slot that the caller has */
void slots_put(struct slots *slots, int slot);   /* not read into, or answered without begin and end */
void slots_stop(struct slots *slots);

/* A request that an earlier server left, or SLOT_NONE. Requests that were running when a server died are returned one
 * by one, so that the one that kills servers is found. */
int slots_replay(struct slots *slots);
unsigned slots_blame(const struct slots *slots, int slot);
/* Slots that a dying server may still read into. Returns one that has received a request (treat it as from
 * slots_replay), or SLOT_NONE. `left`: number of slots that are still open. */
int slots_late(struct slots *slots, int *left);
int slots_late_count(struct slots *slots);

/* Call these around the handling of a slot's request. slots_end returns true if the request was answered and the slot
 * is the caller's again; false: it is parked, or just being answered by another thread. */
void slots_begin(struct slots *slots, int slot);
bool slots_end(struct slots *slots, int slot);
/* The reply to `unique` was written, by any thread. False: no slot has it. */
bool slots_answered(struct slots *slots, uint64_t unique);
/* Another thread continues an unanswered request: a server that dies before the answer counts as killed by it. */
void slots_resume(struct slots *slots, uint64_t unique);
/* An INTERRUPT for `unique` has arrived. False: that request is not in progress (yet). */
bool slots_interrupt(struct slots *slots, uint64_t unique);

/* A request in progress: begun, and not answered. */
struct slots_request {
    uint64_t unique, since;
    uint32_t asker; /* the waiting thread in this pid namespace; 0: not visible */
    bool busy;      /* its handler has not returned */
    bool interrupted;
};
/* The requests in progress at `now`: fills `seen`, which has room for all slots, and returns their number. */
int slots_look(struct slots *slots, uint64_t now, struct slots_request *seen);

#endif
