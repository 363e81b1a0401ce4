/* The ring between a server and a courier: shared memory that belongs to one pair of them. The courier creates it and
 * passes it on; it keeps its mapping until its operations in progress have ended. Neither side trusts the contents: a
 * number out of bounds is an error of the other side, and ends the ring.
 *
 *   part         written by                 contents
 *   to_courier   the server, one thread     FETCH, REPLY, COMMAND
 *                at a time
 *   to_server    the courier                FETCHED, SERVE, SENT, GONE, COMMAND; read by one of the server's threads at
 *                                           a time
 *   news         the courier; our own       the state of each node, by number
 *                element: the server
 *   lists        the courier                the parts of a SERVE of many; free again when it is answered
 *   slots        the courier, [0, in)       fetched data: RING_SLOT bytes each. The server assigns them, and gets one
 *                                           back when FETCHED (other than -EAGAIN) names it
 *                the server, [in, in+out)   data to be sent; free again when SENT names it
 *
 * If a reader is dead or far behind, its queue is full: pushing fails with -EAGAIN. A side sets `asleep` before it
 * sleeps on its eventfd. A writer rings only if the other side sleeps, and for SENT only every RING_SENT_BELL-th time:
 * so some free slots may go unnoticed, but fewer than are in use by any waiting node.
 *
 * A fetch has a number, its `token`, which FETCHED repeats, so that a duplicate answer is not taken for that of the
 * next fetch in the slot. */
#ifndef FS_WIRE_RING_H
#define FS_WIRE_RING_H

#include "fs/wire/node.h"
#include "fs/wire/turn.h"
#include "fs/wire/units.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum ring_kind {
    /* to the courier: */
    /* node, slot, token, file, value, count, flags: fetch these values of a file from a node into a slot. FETCH_MANY:
     * the slot begins with `count` parts */
    RING_FETCH = 1,
    /* node, token, status: 0: `length` bytes in the slot are the answer; -EAGAIN: it will come, send WAIT; other
     * -errno: it will not come */
    RING_REPLY = 2,

    /* to the server: */
    /* slot, token, status: 0: `length` bytes are in the slot, unchecked; -EAGAIN: the other node waits for the source;
     * -EHOSTDOWN: the node or its server has ended; other -errno: the node's answer */
    RING_FETCHED = 3,
    /* node, token, file, value, count, flags: another node wants these. Repeated after a restart. FETCH_MANY: `slot` is
     * the number of the list with the parts */
    RING_SERVE = 4,
    RING_SENT = 5, /* slot: the reply was sent, the slot is free. Most do not wake the server */
    RING_GONE = 7, /* node: its server has ended */

    /* Both directions: value: enum world_command; token: its argument; node: where it began. To the courier: tell all
     * other nodes */
    RING_COMMAND = 6,
};

enum {
    RING_QUEUE = 1024,                          /* messages */
    RING_VALUES = SPAN_BYTES / VALUE_BYTES + 1, /* maximum values per fetch */
    RING_SLOT = (RING_VALUES * (VALUE_MOST + 16) + 4096 + 4095) / 4096 * 4096,
    RING_IN = 128,
    RING_OUT = 64,
    RING_SENT_BELL = 8,
    RING_LISTS = 32,
};

/* BEFORE and STORED are used while samples move (fs/world/FORMAT). */
enum fetch_flags {
    FETCH_BEFORE = 1, /* the new owner asks the previous one: cached data, or -ENOENT at once */
    /* which of `count` extents, from number file | value << 32 on, are stored? Answered by payload_stored */
    FETCH_STORED = 2,
    FETCH_FED = 4,  /* for the feeder; may be combined with BEFORE. Servers answer it after all that readers wait for */
    FETCH_BLOB = 8, /* piece `count` - 1 of the object with key file | value << 32. Answered by payload_blob */
    FETCH_MANY = 16, /* `count` parts of any files: the cached ones, at once. Answered by payload_many */
    /* the last answer was damaged: answered by the server, which verifies the values (tier-share.h). May be combined
     * with BEFORE and FED */
    FETCH_VERIFY = 32,
    /* the server does not answer: only its courier does, from the RAM tier (tier-share.h), or -EHOSTUNREACH at once.
     * May be combined with FED */
    FETCH_SHARED = 64,
};

/* Blocks of values (fs/store/FORMAT) that may be left out, in `flags`: their number at the start of the first value,
 * and at the end of the last one. */
enum {
    FETCH_HEAD = 8,
    FETCH_TAIL = 16,
    FETCH_BLOCKS = VALUE_BYTES / VALUE_BLOCK,
    FETCH_BLOCKS_MASK = (FETCH_BLOCKS - 1) << FETCH_HEAD | (FETCH_BLOCKS - 1) << FETCH_TAIL,
};
static inline uint32_t fetch_head(uint32_t flags)
{
    return flags >> FETCH_HEAD & (FETCH_BLOCKS - 1);
}

static inline uint32_t fetch_tail(uint32_t flags)
{
    return flags >> FETCH_TAIL & (FETCH_BLOCKS - 1);
}

enum { STORED_MOST = 1 << 16 }; /* extents per STORED question */

enum { MANY_MOST = 64 };
struct fetch_part {
    uint32_t file, value, count;
    uint32_t flags; /* only which blocks may be left out */
};

static inline bool fetch_is_sound(uint32_t flags, uint32_t value, uint32_t count)
{
    if (flags == FETCH_STORED)
        return count > 0 && count <= STORED_MOST;
    if (flags == FETCH_BLOB)
        return count > 0;
    if (flags == FETCH_MANY)
        return count > 1 && count <= MANY_MOST;
    if (count == 1 && fetch_head(flags) + fetch_tail(flags) >= FETCH_BLOCKS)
        return false;
    const uint32_t known =
        FETCH_BLOCKS_MASK | FETCH_FED | (flags & FETCH_SHARED ? FETCH_SHARED : FETCH_BEFORE | FETCH_VERIFY);
    return !(flags & ~known) && count > 0 && count <= RING_VALUES && value <= UINT32_MAX - count;
}

static inline bool fetch_parts_are_sound(const struct fetch_part *part, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (part[i].flags & ~(uint32_t)FETCH_BLOCKS_MASK ||
            !fetch_is_sound(part[i].flags, part[i].value, part[i].count))
            return false;
    return true;
}

/* The token of WORLD_STAGE is its round: see store_stage_start. Odd rounds are of chosen files: see
 * fs/control/stage-choice.h. */
static inline bool stage_is_chosen(uint64_t round)
{
    return round & 1;
}
enum world_command {
    WORLD_STAGE = 1,
    WORLD_STAGE_STOP = 2,
    WORLD_UMOUNT = 3,
    WORLD_TURN = 4, /* to its courier, for node 0's: request `turn` */
};

struct ring_message {
    uint32_t kind, node;
    uint32_t slot, length;
    uint64_t token;
    uint32_t file, value; /* value: number of the first one in the file */
    uint32_t count;
    int32_t status;
    union {
        struct turn turn; /* COMMAND: WORLD_TURN */
        uint32_t flags;   /* FETCH, SERVE: enum fetch_flags */
    };
};
_Static_assert(sizeof(struct ring_message) == 64, "a line");

/* What a node tells the others, once per second if it has changed. Torn reads are harmless, except of `version`. */
struct node_news {
    _Atomic uint64_t version; /* odd while it is being written */
    uint64_t held, capacity;
    uint64_t reads[4], bytes[4]; /* by place, as in fs/store/store.h */
    uint64_t source_samples, source_bytes;
    uint32_t staging; /* as stage_progress.state */
    uint32_t zero;
    uint64_t stage_bytes, stage_total;                                              /* of this node's share */
    uint64_t stage_files, stage_files_total, stage_kept, stage_failed, stage_round; /* as in stage_progress */
    uint64_t turn, moved; /* k of its layout, and of the last turn whose bytes have all arrived */
    struct move_news move;
};

struct ring_queue {
    _Atomic uint32_t head __attribute__((aligned(64))); /* messages taken */
    _Atomic uint32_t tail __attribute__((aligned(64))); /* messages put */
    _Atomic uint32_t asleep;                            /* number of sleeping reader threads */
    struct ring_message message[RING_QUEUE] __attribute__((aligned(64)));
};

struct ring_shared {
    uint32_t magic, form, nodes, in, out;
    uint64_t size;
    struct ring_queue to_courier, to_server;
    /* followed by struct node_news[nodes] and struct fetch_part[RING_LISTS][MANY_MOST]; then the slots, from a page
     * boundary on */
};

/* A memfd, sealed against shrinking, and two eventfds; passed on in this order. */
enum { RING_MEMORY, RING_BELL_SERVER, RING_BELL_COURIER, RING_FDS };

/* One side's view, with its own descriptors and its own copies of the numbers, which the other side could change in
 * `shared`. */
struct ring {
    struct ring_shared *shared;
    uint32_t nodes;
    uint64_t size;
    int fd[RING_FDS];
};

int ring_create(struct ring *ring, uint32_t nodes);
/* Owns the descriptors, also on failure. -EBADMSG: not a ring of this form. */
int ring_open(struct ring *ring, const int fd[RING_FDS]);
void ring_close(struct ring *ring);

static inline struct node_news *ring_news(const struct ring *r, uint32_t node) /* node < nodes */
{
    return (struct node_news *)(r->shared + 1) + node;
}
static inline struct fetch_part *ring_list(const struct ring *r, uint32_t list) /* list < RING_LISTS */
{
    return (struct fetch_part *)ring_news(r, r->nodes) + list * MANY_MOST;
}
void *ring_slot(const struct ring *r, uint32_t slot); /* NULL: out of bounds */

/* One thread at a time pushes into a queue, and one takes. -EAGAIN: full, or empty. -EBADMSG: the other side has
 * written an impossible number. */
int ring_push(struct ring_queue *queue, int bell, const struct ring_message *message);
int ring_take(struct ring_queue *queue, struct ring_message *message);
/* Call it before sleeping on the bell. False: there is a message, do not sleep. Call ring_awake afterwards. The bell
 * need not be read: wait for its edges (EPOLLET). Any thread of the reader. */
bool ring_may_sleep(struct ring_queue *queue);
void ring_awake(struct ring_queue *queue);

void news_write(struct node_news *to, const struct node_news *from);
bool news_read(const struct node_news *from, struct node_news *to); /* false: it is being written all the time */

/* The bytes of a reply in a slot: a header, then each value's length with its header, then the stored values
 * (fs/store/FORMAT), each aligned to 16. payload.c composes and parses them. Of a value in blocks there may be only the
 * requested blocks, without its header: then PAYLOAD_CUT is set in its length. */
#define PAYLOAD_CUT (UINT32_C(1) << 31)
struct payload_header {
    uint32_t magic, file, value, count;
    uint32_t length[RING_VALUES];
    uint32_t zero;
};
struct payload_value {
    const void *bytes;
    uint32_t length;
    bool cut;
};
/* The highest bit of the magic of any reply: a courier has made it without its server, from the RAM tier. */
#define PAYLOAD_SHARED (UINT32_C(1) << 31)
void payload_mark_shared(void *slot);
bool payload_is_shared(const void *bytes, size_t n);
/* Offset of the i-th value in a slot, from the lengths of the values before it. */
size_t payload_begin(const uint32_t *length, uint32_t count);
/* Write the header when the values are in place. The length of the whole is payload_begin(length, count). */
void payload_finish(void *slot, const struct value_run *run, const uint32_t *length);
/* Nothing in it is trusted: 0 if it is exactly these values, at least one, with valid lengths; else -EBADMSG. */
int payload_parse(const void *bytes, size_t n, const struct value_run *run, struct payload_value values[RING_VALUES]);

/* The answer to FETCH_MANY, followed by the payload of each part, in their order, aligned to 16. */
struct payload_many {
    uint32_t magic, count;
    uint32_t length[MANY_MOST]; /* 0: this part is not cached */
};
struct payload_part {
    const void *bytes;
    uint32_t length;
};
/* Offset of the payload of the i-th part, from the lengths of the parts before it. */
size_t payload_many_begin(const uint32_t *length, uint32_t i);
void payload_many_finish(void *slot, uint32_t count, const uint32_t *length);
/* 0: these are `count` payloads, still unchecked; -EBADMSG. */
int payload_many_parse(const void *bytes, size_t n, uint32_t count, struct payload_part part[MANY_MOST]);

/* The answer to FETCH_STORED: one bit per extent of [first, first + count), beginning with the lowest of the first
 * word. Like the next struct it has a sum of all its other bytes, since damage would be invisible. */
struct payload_stored {
    uint32_t magic, count;
    uint64_t first;
    uint64_t k; /* the turn under which they are stored */
    uint64_t sum;
    uint64_t word[];
};
/* The answer to FETCH_BLOB: up to BLOB_PIECE bytes of an object, from `piece` * BLOB_PIECE on. */
enum { BLOB_PIECE = 1 << 20 };
struct payload_blob {
    uint32_t magic, piece;
    uint64_t key;
    uint64_t length; /* of the whole object; 0: there is none */
    uint64_t sum;
    uint8_t byte[];
};
_Static_assert(sizeof(struct payload_blob) + BLOB_PIECE <= RING_SLOT, "a slot has room for a piece");
/* Complete a payload whose `n` bytes are in place. Returns the length of the whole. */
size_t payload_blob_finish(void *slot, uint64_t key, uint32_t piece, uint64_t length, size_t n);
/* The piece, or NULL: it is damaged, of another object, or has an impossible length. */
const struct payload_blob *payload_blob_parse(const void *bytes, size_t n, uint64_t key, uint32_t piece);

size_t payload_stored_length(uint32_t count);
/* all bits are 0 */
struct payload_stored *payload_stored_begin(void *slot, uint64_t first, uint32_t count, uint64_t k);
size_t payload_stored_finish(struct payload_stored *stored); /* returns its length */
/* The bits, or NULL: they are damaged, or not for these extents and this turn. */
const uint64_t *payload_stored_parse(const void *bytes, size_t n, uint64_t first, uint32_t count, uint64_t k);

#endif
