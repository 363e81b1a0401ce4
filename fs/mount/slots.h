/* Requests in shared memory: a lane has the slots of one FUSE connection and its recorded INIT.
 *
 * A request is read from /dev/fuse straight into a slot, and the slot is free again when its reply has been written. So
 * whatever instruction a server dies at, every request that the kernel has handed out and not got an answer to stands
 * in a slot, and the next server answers it.
 *
 *            take             read returned      handler returned unanswered
 *    FREE ─────────▶ READING ──────────────▶ RUNNING ──────────────────────▶ PARKED
 *      ▲                │                      │ ▲                             │
 *      │                │ (server died)        │ │ replay                      │
 *      │                └──────────▶ WAITING ◀─┘─┘◀────────────────────────────┘
 *      └──────────────── reply written ◀── RUNNING, PARKED
 *
 * READING with a header that is not zero is a request as well: its reader died on the way to the next store. READING
 * with a zero header belongs to its reader as long as any thread of that process lingers in the kernel, for a read may
 * still be completed by it; then it is free.
 *
 * `deaths` counts the servers in a row that died while they ran the request. Parked and waiting ones are innocent.
 * State and deaths are one word, so that they cannot disagree. */
#ifndef FS_MOUNT_SLOTS_H
#define FS_MOUNT_SLOTS_H

#include "fs/mount/handover.h"

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    DATA_SLOTS = 4096,
    DATA_ROOM = 8192, /* the least that the kernel accepts: FUSE_MIN_READ_BUFFER */
    CONTROL_SLOTS = 128,
    CONTROL_ROOM = (256 << 10) + 8192, /* writes of 256 KiB */
    SLOT_HEADROOM = 4096,              /* what a request may have beside the bytes of a write */
    SLOT_NONE = -1,
    POISON_DEATHS = 3,
};

enum slot_state { SLOT_FREE, SLOT_READING, SLOT_RUNNING, SLOT_PARKED, SLOT_WAITING };

struct slot {
    _Alignas(64) _Atomic uint32_t word; /* enum slot_state, deaths << 8 */
    _Atomic uint32_t reader;            /* process id; valid in READING */
};

enum init_state { INIT_NONE, INIT_READ, INIT_ANSWERED };

/* The INIT of the connection. What was once recorded as its reply is what the kernel has or will get: a server that
 * finds a reply here sends this one and not its own. */
struct init_record {
    _Atomic uint32_t state;
    uint32_t request_length;
    _Atomic uint32_t reply_length;
    unsigned char request[512];
    unsigned char reply[256];
};

struct lane {
    uint32_t count, room;
    uint64_t slots, buffers; /* offsets from the lane */
    struct init_record init;
    _Alignas(64) _Atomic uint64_t answered;
};

size_t lane_size(uint32_t count, uint32_t room);
void lane_init(struct lane *lane, uint32_t count, uint32_t room);

static inline struct slot *lane_slot(const struct lane *lane, int i)
{
    return (struct slot *)((char *)lane + lane->slots) + i;
}

static inline struct fuse_in_header *lane_request(const struct lane *lane, int i)
{
    return (struct fuse_in_header *)((char *)lane + lane->buffers + (size_t)i * lane->room);
}

/* The private view that one server has of a lane. */
struct slots;

/* Sorts out what the server before left: see the picture. */
int slots_create(struct lane *lane, struct slots **slots);
void slots_destroy(struct slots *slots);

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

#endif
