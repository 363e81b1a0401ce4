/* Home: the server of this node, as its courier sees it: the socket STATE/courier (fs/wire/message.h has the
 * conversation) and the ring.
 *
 *   state    meaning                                 the socket       hold           next_at
 *   LOST     there is no server, or none yet         none             the last one   when to connect again
 *   ASKED    HELLO was sent, WELCOME awaited         open             the last one   the timeout
 *   GIVEN    a new ring was passed, OK awaited       open             the new one    the timeout
 *   LIVE     it serves                               open             its own        when to check its process
 *   ENDED    no other server will come               none             the last one   -
 *
 *   LOST ──connect──▶ ASKED ──WELCOME──▶ GIVEN ──OK──▶ LIVE ──hang-up──▶ LOST …
 *     └── no server for some seconds, or one that says END or refuses ──▶ ENDED
 *
 * While the world forms, ask.h leads from LOST to LIVE, and waits. Functions in this file do not wait. After a server
 * has died, the next one gets its own ring. */
#ifndef MPI_HOME_H
#define MPI_HOME_H

#include "fs/base/process.h"
#include "fs/wire/message.h"
#include "fs/wire/ring.h"
#include "mpi/tier-view.h"

#include <sys/queue.h>

enum home_state { HOME_LOST, HOME_ASKED, HOME_GIVEN, HOME_LIVE, HOME_ENDED };

/* A ring; it exists as long as MPI has buffers in it. */
struct hold {
    struct ring ring;
    unsigned users;
};
int hold_create(uint32_t nodes, struct hold **hold);
struct hold *hold_get(struct hold *hold);
void hold_put(struct hold *hold); /* NULL is allowed */

/* Layouts that the server has computed, for its successor. */
enum { LAYOUT_NOW, LAYOUT_BEFORE, LAYOUT_NEXT, LAYOUTS_HELD };
struct layout_bytes {
    struct digest layout;
    int fd; /* -1: none */
};

struct home {
    const char *path; /* the state directory */
    uint8_t world[16];
    uint32_t nodes, me;
    enum home_state state;
    int socket;          /* -1: none */
    uint32_t connection; /* number of the connection */
    struct message_welcome welcome;
    struct digest layout;    /* the current one, */
    struct turn_record last; /* and the turn that led to it */
    struct layout_bytes bytes[LAYOUTS_HELD];
    struct hold *hold;
    struct tier_view *view;           /* what the server shares; NULL: no memory */
    struct process server;            /* the process at the other end */
    STAILQ_HEAD(, late_message) late; /* messages for which the ring had no room */
    uint64_t lost_at, next_at, ticked_at;
    uint64_t gone_after; /* no other server has started */
    /* LIVE: its answer in a turn, until it is taken; number 0: none */
    struct message_ready ready;
    struct message_computed computed;
    bool ending; /* the world ends: a server that hangs up will not return */
};

void home_init(struct home *home, const char *state, uint32_t nodes, const uint8_t world[16]);
void home_hang_up(struct home *home); /* the ring stays */
void home_fini(struct home *home);

/* Owns the descriptor. */
void home_hold_layout(struct home *home, int which, const struct digest *layout, int fd);
/* The world has turned: this is now its layout. */
void home_turn(struct home *home, const struct turn_record *record);

/* Also for ask.c. -ENOENT, -ECONNREFUSED, -EAGAIN: there is no server now, but there may be soon; or another -errno. */
int home_connect(struct home *home);
bool home_may_come(int error);
void home_limit(const struct home *home, int seconds); /* timeout for a frame */
struct message_hello home_hello(const struct home *home);

/* Call it when the socket is readable, or at home_next. Changes are visible in `state`. */
void home_readable(struct home *home);
void home_tick(struct home *home, uint64_t now);
uint64_t home_next(const struct home *home); /* when to call it next: nanoseconds */

/* Send to a LIVE server, in order; messages are queued if there is no room. A server that breaks the protocol is
 * ENDED. */
void home_push(struct home *home, const struct ring_message *message);
bool home_flush(struct home *home); /* true: a message was sent; false: none was queued, or there was no room */
bool home_take(struct home *home, struct ring_message *message);
/* Ask the server for the segment that `view` wants. */
void home_ask_segment(struct home *home);
/* Send a frame to a LIVE server; if it does not take it, it is LOST. */
void home_say(struct home *home, enum message_kind kind, const void *payload, size_t n);
struct iovec;
void home_sayv(struct home *home, enum message_kind kind, const struct iovec *part, int parts);
void home_say_settled(struct home *home, const struct turn_outcome *outcome); /* with the layout's bytes */
/* The server broke the protocol, or is no longer wanted: hang up permanently. */
void home_end(struct home *home, const char *why);

#endif
