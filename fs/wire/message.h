/* What a courier and a server tell each other in addition to the ring, over STATE/courier: a stream socket that the
 * server listens on, for its own user and root. Frames alternate: the courier asks and the server answers. Only SHARED
 * and END come unasked, and SEGMENT may be asked while another answer is due. When either end hangs up, the world is
 * over for this server.
 *
 *   courier                                   server
 *   HELLO  struct message_hello         ──▶   WELCOME  struct message_welcome; or REFUSED with a text
 *   HOLDINGS                            ──▶   HOLDINGS  struct holding, and claims (node.h): two bits per extent
 *   WORLD  struct message_world,        ──▶   LAYOUT  its digest; with a descriptor of its bytes, which the courier
 *          members, holders; with the         keeps for the next server
 *          ring's three descriptors
 *   LIVE                                ──▶   OK: from now on peers are asked
 *
 *   in a living world, when the layout turns:
 *   BEGIN  struct message_turn          ──▶   READY  struct message_ready
 *   COMPUTE  struct message_turn,       ──▶   COMPUTED  struct message_computed: the next layout; with a
 *            each node's room                 descriptor of its bytes
 *   SETTLED  struct turn_outcome; with a      all nodes have the layout `after` from now on, or the turn has failed
 *            descriptor of the layout's bytes
 *
 *   in a living world, if the courier may answer from the RAM tier (tier-share.h):
 *                                      ◀──   SHARED  struct message_shared; with SHARE_FDS descriptors. Follows the
 *                                             OK of LIVE or RESUME
 *   SEGMENT  its number (uint32_t)      ──▶   SEGMENT  struct message_segment; with SHARE_FDS descriptors
 *
 *   after a restart of the server, to the new one, with a new ring:
 *   HELLO, RESUME struct message_resume ──▶   OK: live again with the last layout. The descriptors of its bytes, and of
 *                                             the previous layout's, follow those of the ring
 *
 *   RESIZE  path of the source's        ──▶   OK, from a server with resize= that waits for its first world
 *          catalog; with a descriptor         (wait_join): the program that resizes this node's part has it, and talks
 *                                             over the descriptor (resizing.h); the result is `resized` in STATE
 *   CATALOG  path                       ──▶   OK, only from a server that waits for its first world: the catalog is in
 *                                             place (with resize=: the file `resized`, which contains it); then HELLO
 *                                             follows, as above
 *
 *   at any time, unasked                      END: this mount has ended, there will be no other server
 *
 * If a courier hangs up before LIVE, the server forgets it. */
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
    MESSAGE_REFUSED, /* uint32_t errno, then a text */
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
    MESSAGE_SHARED,
    MESSAGE_SEGMENT,
};
enum { MESSAGE_VERSION = 11, MESSAGE_FDS = 5 };
#define MESSAGE_MOST (UINT64_C(1) << 33)
/* Holders in a message about a world: a world with more extents x groups is refused when it first forms. */
#define MESSAGE_HOLDERS_MOST (MESSAGE_MOST / 2 / sizeof(uint16_t))

struct message_frame {
    uint32_t kind, zero;
    uint64_t length; /* of the payload */
};

struct message_hello {
    uint32_t version, zero;
    char release[VERSION_TEXT]; /* dealfs's version */
    uint8_t world[16];          /* uuid of the courier's world */
};

struct message_welcome {
    uint32_t version;
    uint32_t waiting; /* 1: it has no catalog yet */
    char release[VERSION_TEXT];
    struct world_node node;
    struct digest catalog, versions; /* of the dataset; of its files' versions on this node */
    uint64_t options;                /* hash of the options that must be the same on all nodes */
    uint64_t extents;
    uint64_t peer_timeout;    /* nanoseconds */
    uint32_t resize, quality; /* of the mount; 0: not set */
};

struct message_world {
    uint8_t world[16];
    uint32_t nodes, groups, me;
    uint32_t held; /* 1: some extent is cached */
    /* followed by struct message_member[nodes] and, if `held`, the holders of struct layout_input */
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
    uint64_t number; /* of this attempt */
    uint64_t k;
    struct turn turn;
};

struct message_ready {
    uint64_t number;
    int32_t status; /* -EBUSY: the move of the previous turn is not done here; or another -errno */
    uint32_t zero;
    uint64_t room; /* for TURN_ROOM: the cost for which there is room */
};

struct message_computed {
    uint64_t number;
    int32_t status; /* 0, or -errno */
    uint32_t zero;
    struct digest layout;
};

/* Both ends. Send and receive a whole frame; the descriptors in `fds`, up to the first -1, are passed with it (NULL:
 * none). The received payload is malloc'd, and followed by a NUL that does not count. Unexpected descriptors are
 * closed; missing ones are -1. 0, -ECONNRESET at the end of the stream, -EBADMSG, -EMSGSIZE, -ENOMEM, -errno. */
int message_send(int socket, enum message_kind kind, const void *payload, size_t n, const int fds[MESSAGE_FDS]);
struct iovec;
int message_sendv(int socket, enum message_kind kind, const struct iovec *part, int parts, const int fds[MESSAGE_FDS]);
int message_receive(int socket, uint32_t *kind, void **payload, size_t *n, int fds[MESSAGE_FDS]);

/* The errno and text of REFUSED. */
int message_refusal(const void *payload, size_t n, struct str *why);
/* 0; -EPROTO: not a valid WELCOME; -ESTALE: of another version (fs/base/version.h): only `release` is valid, which has
 * the same offset in all versions. */
int message_check_welcome(const void *payload, size_t n, struct message_welcome *to);

/* The courier's end: connect to the server of a state directory. The peer's user must be root or ours or, if we are
 * root, the directory's owner. -ENOENT, -ECONNREFUSED: there is no server now. */
int message_connect(const char *state);
/* The server's end: */
int message_listen(const char *state); /* replaces the previous server's socket */
int message_accept(int listening);     /* -EPERM: another user's */

#endif
