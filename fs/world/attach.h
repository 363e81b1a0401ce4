/* What a courier and a server say to each other beside the ring, over STATE/courier: a stream socket that the server
 * listens on, open to its own user and root. Frames in turn, the courier asks and the server answers; when either end
 * hangs up, the world is over for this server.
 *
 *   courier                                   server
 *   HELLO  struct attach_hello      ──▶       WELCOME  struct attach_welcome, or REFUSED with words
 *   HOLDINGS                        ──▶       HOLDINGS  struct holding, and a bitmap, an extent a bit
 *   WORLD  struct attach_world,
 *          members, holders; with the
 *          ring's three descriptors ──▶       DIRECTORY  its digest: computed and saved as STATE/directory-DIGEST
 *   LIVE                            ──▶       OK: from now on peers are asked
 *
 *   live, when the shards were filled and some extents have no owner (a deal, which has a number):
 *   ROOM  number                    ──▶       ROOM  struct attach_room
 *   DEAL  number, each node's room  ──▶       DEALT  struct attach_dealt: the directory that would be, saved
 *   SETTLED  struct attach_settled            all nodes have this directory from now on: the new one, or that before
 *
 *   after a restart of the server, to the new one, with a new ring:
 *   HELLO, then RESUME struct attach_resume ▶ OK: live again with the directory that is saved
 *
 *   CATALOG  path                   ──▶       OK, from a server that waits for its first world (wait_join) only: the
 *                                             catalog is in place; then HELLO goes on as above
 *
 *   at any time, unasked                      END: this mount has ended, no other server will come
 *
 * The server forgets a courier that has not become LIVE when the socket hangs up. */
#ifndef FS_WORLD_ATTACH_H
#define FS_WORLD_ATTACH_H

#include "fs/world/directory.h"

enum attach_kind {
    ATTACH_HELLO = 1,
    ATTACH_WELCOME,
    ATTACH_REFUSED, /* uint32_t errno, then words */
    ATTACH_HOLDINGS,
    ATTACH_WORLD,
    ATTACH_DIRECTORY,
    ATTACH_LIVE,
    ATTACH_RESUME,
    ATTACH_OK,
    ATTACH_CATALOG,
    ATTACH_END,
    ATTACH_ROOM,
    ATTACH_DEAL,
    ATTACH_DEALT,
    ATTACH_SETTLED,
};
enum { ATTACH_VERSION = 2, ATTACH_FDS = 3, ATTACH_MOST = 1 << 30, VERSION_TEXT = 32 };

struct attach_frame {
    uint32_t kind, zero;
    uint64_t length; /* of what follows */
};

struct attach_hello {
    uint32_t version, zero;
    char release[VERSION_TEXT]; /* dealfs's */
    uint8_t world[16];          /* uuid of the courier's world */
};

struct attach_welcome {
    uint32_t version;
    uint32_t waiting;           /* 1: it has no catalog yet */
    char release[VERSION_TEXT];
    struct world_node node;
    struct digest catalog;
    uint64_t options;           /* hash of the options that must be the same on all nodes */
    uint64_t extents;
    uint64_t peer_timeout;      /* nanoseconds */
    char mountpoint[512];       /* for messages */
};

struct attach_world {
    uint8_t world[16];
    uint32_t nodes, groups, me;
    uint32_t held; /* 1: anything is held */
    /* then struct attach_member[nodes], then, where anything is held, the holders of struct directory_input */
};

struct attach_member {
    struct world_node node;
    struct holding holding;
};

struct attach_resume {
    uint8_t world[16];
    uint32_t nodes, me;
    struct digest directory;
};

struct attach_room {
    uint64_t number, room;
};

struct attach_dealt {
    uint64_t number;
    struct digest directory; /* zeros: it failed */
};

struct attach_settled {
    uint64_t round; /* of the staging after which it was dealt */
    struct digest directory;
};

/* Both ends. Send and receive a whole frame; `fds` are passed with it (none: NULL). The payload is malloc'd; descriptors
 * that were not expected are closed, and `fds` are -1 where none came. The payload is followed by a NUL that does not
 * count. 0, -ECONNRESET at the end of the stream, -EBADMSG, -EMSGSIZE, -ENOMEM, -errno. */
int attach_send(int socket, enum attach_kind kind, const void *payload, size_t n, const int fds[ATTACH_FDS]);
struct iovec;
int attach_sendv(int socket, enum attach_kind kind, const struct iovec *part, int parts, const int fds[ATTACH_FDS]);
int attach_receive(int socket, uint32_t *kind, void **payload, size_t *n, int fds[ATTACH_FDS]);

/* The courier's end: connect to the server of a state directory; the peer's credentials are checked: its user must be
 * root or ours, or, when we are root, the directory's owner. -ENOENT, -ECONNREFUSED: there is no server now. */
int attach_connect(const char *state);
/* The server's end. */
int attach_listen(const char *state); /* in the place of the server before it */
int attach_accept(int listening);     /* -EPERM for another user's */

#endif
