/* What a courier and a server say to each other beside the ring, over STATE/courier: a stream socket that the server
 * listens on, open to its own user and root. Frames in turn, the courier asks and the server answers; when either end
 * hangs up, the world is over for this server.
 *
 *   courier                                   server
 *   HELLO  struct message_hello         ──▶   WELCOME  struct message_welcome, or REFUSED with words
 *   HOLDINGS                            ──▶   HOLDINGS  struct holding, and claims (node.h), two bits for each extent
 *   WORLD  struct message_world,        ──▶   LAYOUT  its digest; with a descriptor of its bytes, which the courier
 *          members, holders; with the         keeps for the server after this one
 *          ring's three descriptors
 *   LIVE                                ──▶   OK: from now on peers are asked
 *
 *   live, when the layout is to turn:
 *   BEGIN  struct message_turn          ──▶   READY  struct message_ready
 *   COMPUTE  struct message_turn,       ──▶   COMPUTED  struct message_computed: the layout that would be; with a
 *            each node's room                 descriptor of its bytes
 *   SETTLED  struct turn_outcome; with a      all nodes have the layout `after` from now on, or the turn has failed
 *            descriptor of the layout's bytes
 *
 *   after a restart of the server, to the new one, with a new ring:
 *   HELLO, RESUME struct message_resume ──▶   OK: live again with the last layout, whose bytes follow the ring's
 *                                             descriptors, and then those of the one before it
 *
 *   RESIZE  path of the source's        ──▶   OK, from a server of a mount with resize= that waits for its first world
 *          catalog; with a descriptor         (wait_join): the program that resizes this node's part has it, and talks
 *                                             over that (resizing.h); `resized` in STATE is what comes of it
 *   CATALOG  path                       ──▶   OK, from a server that waits for its first world only: the catalog is in
 *                                             place (with resize=: a file `resized`, which has it); then HELLO goes on
 *                                             as above
 *
 *   at any time, unasked                      END: this mount has ended, no other server will come
 *
 * The server forgets a courier that has not become LIVE when the socket hangs up. */
#ifndef FS_WIRE_MESSAGE_H
#define FS_WIRE_MESSAGE_H

#include "fs/base/hash.h"
#include "fs/base/str.h"
#include "fs/base/version.h"
#include "fs/wire/node.h"
#include "fs/wire/turn.h"

#include <stddef.h>

enum message_kind {
    MESSAGE_HELLO = 1,
    MESSAGE_WELCOME,
    MESSAGE_REFUSED, /* uint32_t errno, then words */
    MESSAGE_HOLDINGS,
    MESSAGE_WORLD,
    MESSAGE_LAYOUT,
    MESSAGE_LIVE,
    MESSAGE_RESUME,
    MESSAGE_OK,
    MESSAGE_CATALOG,
    MESSAGE_END,
    MESSAGE_BEGIN,
    MESSAGE_READY,
    MESSAGE_COMPUTE,
    MESSAGE_COMPUTED,
    MESSAGE_SETTLED,
    MESSAGE_RESIZE,
};
enum { MESSAGE_VERSION = 9, MESSAGE_FDS = 5, MESSAGE_MOST = 1 << 28 };

struct message_frame {
    uint32_t kind, zero;
    uint64_t length; /* of what follows */
};

struct message_hello {
    uint32_t version, zero;
    char release[VERSION_TEXT]; /* dealfs's */
    uint8_t world[16];          /* uuid of the courier's world */
};

struct message_welcome {
    uint32_t version;
    uint32_t waiting; /* 1: it has no catalog yet */
    char release[VERSION_TEXT];
    struct world_node node;
    struct digest catalog, versions; /* of the dataset, and of its files' versions here */
    uint64_t options;                /* hash of the options that must be the same on all nodes */
    uint64_t extents;
    uint64_t peer_timeout;    /* nanoseconds */
    uint32_t resize, quality; /* as it was mounted with; 0: without */
};

struct message_world {
    uint8_t world[16];
    uint32_t nodes, groups, me;
    uint32_t held; /* 1: anything is held */
    /* then struct message_member[nodes], then, where anything is held, the holders of struct layout_input */
};

struct message_member {
    struct world_node node;
    struct holding holding;
};

struct message_resume {
    uint8_t world[16];
    uint32_t nodes, me;
    struct digest layout;
    struct turn_record last; /* of this world; k = 0: it has not turned yet */
};

struct message_turn {
    uint64_t number; /* of this try of it */
    uint64_t k;
    struct turn turn;
};

struct message_ready {
    uint64_t number;
    int32_t status; /* -EBUSY: the move of the turn before is not done here; other -errno */
    uint32_t zero;
    uint64_t room; /* for TURN_ROOM: the cost that still has room */
};

struct message_computed {
    uint64_t number;
    int32_t status; /* 0, or -errno */
    uint32_t zero;
    struct digest layout;
};

/* Both ends. Send and receive a whole frame; `fds` up to the first -1 are passed with it (none: NULL). The payload is
 * malloc'd; descriptors that were not expected are closed, and `fds` are -1 where none came. The payload is followed by
 * a NUL that does not count. 0, -ECONNRESET at the end of the stream, -EBADMSG, -EMSGSIZE, -ENOMEM, -errno. */
int message_send(int socket, enum message_kind kind, const void *payload, size_t n, const int fds[MESSAGE_FDS]);
struct iovec;
int message_sendv(int socket, enum message_kind kind, const struct iovec *part, int parts, const int fds[MESSAGE_FDS]);
int message_receive(int socket, uint32_t *kind, void **payload, size_t *n, int fds[MESSAGE_FDS]);

/* What REFUSED says: its -errno, and its words. */
int message_refusal(const void *payload, size_t n, struct str *why);
/* 0; -EPROTO: it is none; -ESTALE: of a version that does not match (fs/base/version.h): only `release` is right, which
 * stands at the same place in all. */
int message_check_welcome(const void *payload, size_t n, struct message_welcome *to);

/* The courier's end: connect to the server of a state directory; the peer's credentials are checked: its user must be
 * root or ours, or, when we are root, the directory's owner. -ENOENT, -ECONNREFUSED: there is no server now. */
int message_connect(const char *state);
/* The server's end. */
int message_listen(const char *state); /* in the place of the server before it */
int message_accept(int listening);     /* -EPERM for another user's */

#endif
