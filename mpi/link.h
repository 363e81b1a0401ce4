/* The courier's end of STATE/courier and of the ring: fs/world/attach.h has the conversation.
 *
 *   LOST ──connect──▶ ASKED ──WELCOME──▶ GIVEN ──OK──▶ LIVE ──hang-up──▶ LOST …
 *     └── no server for some seconds, or one that says END or refuses ──▶ ENDED
 *
 * While the world forms the functions of the first group are used, which wait; from LIVE on the others, which do not.
 * After a server has died, the next one gets a ring of its own. */
#ifndef MPI_LINK_H
#define MPI_LINK_H

#include "fs/base/str.h"
#include "fs/mount/process.h"
#include "fs/world/attach.h"
#include "fs/world/ring.h"

enum link_state { LINK_LOST, LINK_ASKED, LINK_GIVEN, LINK_LIVE, LINK_ENDED };

/* A ring, kept as long as MPI has buffers in it. */
struct hold {
    struct ring ring;
    unsigned users;
};
struct hold *hold_get(struct hold *hold);
void hold_put(struct hold *hold); /* NULL is taken */

struct link {
    const char *path; /* the state directory */
    uint8_t world[16];
    uint32_t nodes, me;
    enum link_state state;
    int socket;          /* -1: none */
    uint32_t connection; /* counts them */
    struct attach_welcome welcome;
    struct digest directory;
    struct hold *hold;     /* ASKED and LOST: still that of the server before */
    struct process server; /* who is at the other end */
    /* what did not fit into the ring: a queue */
    struct ring_message *late;
    size_t late_first, late_count, late_room;
    uint64_t lost_at, next_at; /* LOST, ASKED, GIVEN: since when; when to try or to look next */
    uint64_t looked_at;        /* LIVE: at the server's process */
    /* LIVE: what it has answered in a deal, until somebody takes it */
    bool has_room, has_dealt;
    struct attach_room room;
    struct attach_dealt dealt;
    bool ending;               /* the world is being taken down: who hangs up does not come back */
};

void link_init(struct link *link, const char *state, const uint8_t world[16]);
void link_hang_up(struct link *link); /* the ring stays */
void link_fini(struct link *link);

/* --- while the world forms: 0, or -errno and why --- */

int link_open(struct link *link, uint64_t patience, struct str *why);        /* connect, HELLO: `welcome` is set */
int link_give_catalog(struct link *link, const char *path, struct str *why); /* to one that waits; `welcome` is new */
/* The bitmap has (extents + 63) / 64 words, malloc'd. */
int link_holdings(struct link *link, struct holding *holding, uint64_t **words, struct str *why);
/* Makes the ring. `holder`: as in struct directory_input. `directory` is what the server computed. */
int link_world(struct link *link, uint32_t me, uint32_t nodes, uint32_t groups, const struct attach_member *member,
               const uint16_t *holder, struct str *why);
int link_live(struct link *link, struct str *why);

/* --- in the event loop --- */

/* What has changed is in `state`. Something can be read from the socket, or it is time to look. */
void link_readable(struct link *link);
void link_tick(struct link *link, uint64_t now);
uint64_t link_next(const struct link *link); /* when it wants to be called: nanoseconds */

/* To a server that is LIVE, in order; what does not fit is kept. A server that breaks the rules is LOST. */
void link_push(struct link *link, const struct ring_message *message);
bool link_flush(struct link *link); /* true: something has gone, false: nothing had to, or nothing could */
bool link_take(struct link *link, struct ring_message *message);
/* A frame to a server that is LIVE; one that does not take it is LOST. */
void link_say(struct link *link, enum attach_kind kind, const void *payload, size_t n);
/* The server has written what cannot be, or is no longer wanted: hang up, for good. */
void link_end(struct link *link, const char *why);

#endif
