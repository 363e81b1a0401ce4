/* A turn: all nodes of a world replace their layout by the next one, together. Turns are numbered k = 1…; layout 0 is
 * the one that the world was joined with. Here: what is asked for, what was done, and how the bytes follow. */
#ifndef FS_WIRE_TURN_H
#define FS_WIRE_TURN_H

#include "fs/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum turn_cause {
    TURN_ROOM = 1, /* compression made room: what has no owner is dealt; epoch: the round of staging that it follows */
    TURN_EXCHANGE, /* for this epoch a part of each node's samples changes its node */
    TURN_SHUFFLE,  /* all of them may */
};
enum {
    TURN_WHOLE = 1000000, /* fractions are in millionths */
};

/* What is asked for. What a cause does not use is 0. */
struct turn {
    uint32_t cause, fraction; /* fraction: TURN_EXCHANGE: 0…TURN_WHOLE; TURN_SHUFFLE: TURN_WHOLE */
    uint64_t epoch, seed;
};

/* What was done. */
struct turn_record {
    struct turn turn;
    uint64_t k;
    struct digest earlier;       /* the layout before `before`; zeros: there was none */
    struct digest before, after; /* layouts; the same where nothing had to change */
};

/* What became of a turn: it was taken; or it failed on a node, and the record names the layout that stays. */
struct turn_outcome {
    struct turn_record record;
    int32_t status; /* 0, or -errno */
    uint32_t node;  /* where it failed */
};

/* How the bytes follow the last turn, as seen by one node. */
struct move_news {
    uint64_t samples, bytes;                 /* that are to come */
    uint64_t come_samples, come_bytes;       /* so far */
    uint64_t refused_samples, refused_bytes; /* no room: they stay where they were */
    uint64_t sent_samples, sent_bytes;       /* to their new owners, so far */
    uint64_t dropped_bytes;                  /* of what new owners have confirmed */
    uint64_t rewritten_bytes;                /* to get the room of what was dropped back */
    uint64_t nanoseconds;                    /* since the turn; when the move is done: how long it took */
};

extern const char *const turn_names[]; /* by cause: "room", "exchange", "shuffle" */
bool turn_is_sound(const struct turn *turn);
bool turn_same(const struct turn *a, const struct turn *b);

#endif
