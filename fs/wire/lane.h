/* Requests in shared memory: a lane has the slots of one FUSE connection and its recorded INIT.
 *
 * A request is read from /dev/fuse directly into a slot, and the slot is free again when its reply has been written. So
 * at whatever instruction a server dies, every unanswered request is in a slot, and the next server answers it.
 *
 *             take             read returned      handler returned unanswered
 *     FREE ─────────▶ READING ──────────────▶ RUNNING ──────────────────────▶ PARKED
 *       ▲                │                      │ ▲   ◀──────── resume ──────── │
 *       │                │ (server died)        │ │ replay                      │
 *       │                └──────────▶ WAITING ◀─┘─┘◀────────────────────────────┘
 *       └──────────────── reply written ◀── RUNNING, PARKED
 *
 * READING with a nonzero header is also a request: its reader died before the next store. READING with a zero header
 * belongs to its reader as long as any thread of that process lingers in the kernel, because such a thread may still
 * complete a read; then it is free.
 *
 *               blame            the buffer                   owner, in the running server
 *      FREE     0                undefined                    the stack of free slots, or the reader that reuses it
 *      READING  0                a header of zeros at first   `reader`, a process; its thread that reads
 *      RUNNING  of those before  the request                  a handler, or the thread that has resumed it
 *      PARKED   of those before  the request                  its answerer; `since` and `interrupted` stay
 *      WAITING  counted again    the request                  the stack of fresh ones (no blame) or of suspects
 *
 * `since` and `interrupted` belong to the request, from READING to its answer, across servers.
 *
 * `blame` grows with each of the consecutive servers that died while they ran the request: fs/fuse/slots.h. Parked and
 * waiting requests are innocent. State and blame are one word, so that they cannot disagree. */
#ifndef FS_WIRE_LANE_H
#define FS_WIRE_LANE_H

#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATA_SLOTS = 4096,
    DATA_ROOM = 8192,                  /* minimum that the kernel accepts: FUSE_MIN_READ_BUFFER */
    CONTROL_SLOTS = 1024,              /* more than can wait in fs/control/workers.c */
    CONTROL_ROOM = (256 << 10) + 8192, /* for writes of 256 KiB */
    SLOT_HEADROOM = 4096,              /* space for a request's headers, in addition to the bytes of a write */
};

enum slot_state { SLOT_FREE, SLOT_READING, SLOT_RUNNING, SLOT_PARKED, SLOT_WAITING };

struct slot {
    _Alignas(64) _Atomic uint32_t word; /* enum slot_state | blame << 8 */
    _Atomic uint32_t reader;            /* process id; valid in READING */
    _Atomic uint64_t since; /* when a look first found the request in progress: nanoseconds, monotonic; 0: not yet */
    _Atomic uint32_t interrupted; /* an INTERRUPT for it has arrived; the kernel sends only one */
};

enum init_state { INIT_NONE, INIT_READ, INIT_ANSWERED };

/* The INIT of the connection. A recorded reply is what the kernel has or will get: a server that finds one sends it
 * instead of its own. */
struct init_record {
    _Atomic uint32_t state;
    uint32_t request_length;
    _Atomic uint32_t reply_length;
    unsigned char request[512];
    unsigned char reply[256];
};

/* READs of these bytes of an inode ended servers, so they fail with EIO for a while: without this, the kernel or a
 * program that repeats them would end the next servers. `until` is 0 while the others change. */
struct lane_bar {
    _Atomic uint64_t until; /* nanoseconds, monotonic; 0: unused */
    _Atomic uint64_t ino, from, to;
};
enum { LANE_BARS = 16 };

struct lane {
    uint32_t count, room;
    uint64_t slots, buffers; /* offsets from the lane */
    struct init_record init;
    _Atomic uint64_t barred; /* the latest `until`, so that most READs look at nothing else */
    struct lane_bar bar[LANE_BARS];
    _Alignas(64) _Atomic uint64_t answered;
};

size_t lane_size(uint32_t count, uint32_t room);
void lane_init(struct lane *lane, uint32_t count, uint32_t room);

/* READs that overlap this one (`whole`: READs of its file) fail until then. Not called concurrently. */
void lane_bar_read(struct lane *lane, const struct fuse_in_header *request, bool whole, uint64_t until);
bool lane_bars(const struct lane *lane, const struct fuse_in_header *request, uint64_t now); /* is it such a READ? */

static inline struct slot *lane_slot(const struct lane *lane, int i)
{
    return (struct slot *)((char *)lane + lane->slots) + i;
}

static inline struct fuse_in_header *lane_request(const struct lane *lane, int i)
{
    return (struct fuse_in_header *)((char *)lane + lane->buffers + (size_t)i * lane->room);
}

#endif
