/* A turn: all nodes of a world replace their layout by the next one together. Turns are numbered k = 1, 2, …; layout 0
 * is the one of the join. This file has what is requested, what was done, and how the bytes move. */
#ifndef FS_WIRE_TURN_H
#define FS_WIRE_TURN_H

#include "fs/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum turn_cause {
    /* compression made room: extents without an owner get one; epoch: the round of staging that it follows */
    TURN_ROOM = 1,
    TURN_EXCHANGE, /* for this epoch, a part of each node's samples moves to other nodes */
    TURN_SHUFFLE,  /* all of them may move */
};
enum {
    TURN_WHOLE = 1000000, /* fractions are in millionths */
};

/* A request. Fields that a cause does not use are 0. */
struct turn {
    uint32_t cause, fraction; /* fraction: TURN_EXCHANGE: 0…TURN_WHOLE; TURN_SHUFFLE: TURN_WHOLE */
    uint64_t epoch, seed;
};

/* A turn that was taken. */
struct turn_record {
    struct turn turn;
    uint64_t k;
    struct digest earlier;       /* the layout before `before`; zeros: there was none */
    struct digest before, after; /* layouts; equal if nothing changed */
};

/* The result of a turn: it was taken; or it failed on a node, and the record names the current layout. */
struct turn_outcome {
    struct turn_record record;
    int32_t status; /* 0, or -errno */
    uint32_t node;  /* where it failed */
};

/* How the bytes move after the last turn, as seen by one node. */
struct move_news {
    uint64_t samples, bytes;                 /* all that should come here */
    uint64_t come_samples, come_bytes;       /* arrived so far */
    uint64_t refused_samples, refused_bytes; /* no room: they stay at their previous owners */
    uint64_t sent_samples, sent_bytes;       /* to their new owners, so far */
    uint64_t dropped_bytes;                  /* bytes that new owners have confirmed */
    uint64_t rewritten_bytes;                /* bytes that were rewritten to reclaim the room of dropped ones */
    uint64_t nanoseconds;                    /* since the turn; when the move is done: its duration */
};

extern const char *const turn_names[]; /* by cause: "room", "exchange", "shuffle" */
bool turn_is_sound(const struct turn *turn);
bool turn_same(const struct turn *a, const struct turn *b);

#endif
