/* Home: the server of this node, as its courier sees it: the socket STATE/courier (fs/wire/message.h has the
 * conversation) and the ring.
 *
 *   state    what it means                           the socket       hold           next_at
 *   LOST     there is no server, or none yet         none             the last one   when to connect again
 *   ASKED    HELLO is said, WELCOME awaited          open             the last one   when that takes too long
 *   GIVEN    a new ring is passed over, OK awaited   open             the new one    the same
 *   LIVE     it serves                               open             its own        when to look at its process
 *   ENDED    no other server will come, for good     none             the last one   -
 *
 *   LOST ──connect──▶ ASKED ──WELCOME──▶ GIVEN ──OK──▶ LIVE ──hang-up──▶ LOST …
 *     └── no server for some seconds, or one that says END or refuses ──▶ ENDED
 *
 * While the world forms ask.h leads from LOST to LIVE, and waits. Here nothing waits. After a server has died, the next
 * one gets a ring of its own. */
#ifndef MPI_HOME_H
#define MPI_HOME_H

#include "fs/base/str.h"
#include "fs/base/process.h"
#include "fs/wire/message.h"
#include "fs/wire/ring.h"

#include <sys/queue.h>

enum home_state { HOME_LOST, HOME_ASKED, HOME_GIVEN, HOME_LIVE, HOME_ENDED };

/* A ring, kept as long as MPI has buffers in it. */
struct hold {
    struct ring ring;
    unsigned users;
};
int hold_create(uint32_t nodes, struct hold **hold);
struct hold *hold_get(struct hold *hold);
void hold_put(struct hold *hold); /* NULL is taken */

/* Layouts as their server has made them, for the one after it. */
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
    uint32_t connection; /* counts them */
    struct message_welcome welcome;
    struct digest layout;    /* of now, */
    struct turn_record last; /* and the turn that led to it */
    struct layout_bytes bytes[LAYOUTS_HELD];
    struct hold *hold;
    struct process server;            /* who is at the other end */
    STAILQ_HEAD(, late_message) late; /* what did not fit into the ring */
    uint64_t lost_at, next_at, ticked_at;
    /* LIVE: what it has answered in a turn, until somebody takes it; number 0: nothing */
    struct message_ready ready;
    struct message_computed computed;
    bool ending; /* the world is being taken down: who hangs up does not come back */
};

void home_init(struct home *home, const char *state, const uint8_t world[16]);
void home_hang_up(struct home *home); /* the ring stays */
void home_fini(struct home *home);

/* Takes a descriptor over. */
void home_hold_layout(struct home *home, int which, const struct digest *layout, int fd);
/* The world has turned: from now on this is its layout. */
void home_turn(struct home *home, const struct turn_record *record);

/* Also for ask.c. -ENOENT, -ECONNREFUSED, -EAGAIN: there is no server now, but perhaps soon; other -errno. */
int home_connect(struct home *home);
bool home_may_come(int error);
void home_limit(const struct home *home, int seconds); /* the time that a frame may take */
struct message_hello home_hello(const struct home *home);

/* What has changed is in `state`. Something can be read from the socket, or it is time to look. */
void home_readable(struct home *home);
void home_tick(struct home *home, uint64_t now);
uint64_t home_next(const struct home *home); /* when it wants to be called: nanoseconds */

/* To a server that is LIVE, in order; what does not fit is kept. A server that breaks the rules is ENDED. */
void home_push(struct home *home, const struct ring_message *message);
bool home_flush(struct home *home); /* true: something has gone, false: nothing had to, or nothing could */
bool home_take(struct home *home, struct ring_message *message);
/* A frame to a server that is LIVE; one that does not take it is LOST. */
void home_say(struct home *home, enum message_kind kind, const void *payload, size_t n);
struct iovec;
void home_sayv(struct home *home, enum message_kind kind, const struct iovec *part, int parts);
void home_say_settled(struct home *home, const struct turn_outcome *outcome); /* with the layout's bytes */
/* The server has written what cannot be, or is no longer wanted: hang up, for good. */
void home_end(struct home *home, const char *why);

#endif
