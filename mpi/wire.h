/* The messages between couriers; mpi/FORMAT describes them byte by byte. Nothing here calls MPI.
 *
 * A courier uses nothing from another courier before it was checked here. */
#ifndef MPI_WIRE_H
#define MPI_WIRE_H

#include "fs/base/hash.h"
#include "fs/wire/ring.h"

enum { WIRE_MAGIC = 0x77666c64, WIRE_VERSION = 14, RELEASE_TEXT = 32, WHY_TEXT = 400 };
enum { WIRE_IN_FLIGHT = 64 }; /* maximum unanswered FETCHes from one node to another */

/* Tags of MPI messages. The asking node chooses a new tag for each answer. */
enum wire_tag { TAG_MESSAGE = 1, TAG_ROOMS = 2, TAG_BEAT = 3, TAG_ANSWER = 1024 };

enum wire_kind {
    WIRE_FETCH = 1, /* send these values of a file, with this tag */
    WIRE_WAIT,      /* the answer with this tag will come: the source is slow, or a server restarts */
    WIRE_GONE,      /* this node's server has ended, and there will be no other in this world */
    WIRE_COMMAND,   /* from a server to all others */
    WIRE_NEWS,      /* the state of a node */
    WIRE_QUIT,      /* this courier leaves: the world ends */
    /* a turn (mpi/conductor.h); from or to node 0: */
    WIRE_TURN,     /* requests this turn, as number k */
    WIRE_BEGIN,    /* are you ready for it, and how much room do you have? */
    WIRE_READY,    /* yes, this much; or why not */
    WIRE_COMPUTED, /* the layout that follows from the rooms of all */
    WIRE_SETTLED,  /* this is the layout; or the turn failed, and where */
    /* mpi/mail.h */
    WIRE_PING, /* do my messages arrive? */
    WIRE_PONG, /* yes */
};

/* struct node_news without its version; any values are valid. */
struct wire_news {
    uint64_t word[sizeof(struct node_news) / sizeof(uint64_t) - 1];
};

/* Unused fields are 0. Bytes after the last used field are not sent. */
struct wire_message {
    uint32_t magic, kind;
    uint32_t tag;                /* FETCH, WAIT */
    uint32_t file, value, count; /* FETCH */
    uint32_t flags;              /* FETCH: enum fetch_flags */
    uint32_t command;            /* COMMAND: enum world_command */
    int32_t status;              /* READY, COMPUTED, SETTLED: 0, or -errno */
    uint32_t zero;
    uint64_t token; /* COMMAND: argument; BEGIN, READY, COMPUTED: number of the attempt; failed SETTLED: the node */
    uint64_t room;  /* READY */
    struct digest layout; /* COMPUTED, SETTLED */
    uint64_t k;           /* TURN, BEGIN, SETTLED */
    struct turn turn;     /* TURN, BEGIN, SETTLED */
    union {
        struct wire_news news;             /* NEWS */
        struct fetch_part part[MANY_MOST]; /* FETCH with FETCH_MANY: `count` elements */
    };
};
enum { WIRE_SHORT = offsetof(struct wire_message, news), WIRE_LONG = sizeof(struct wire_message) };

/* Sent instead of a payload when a fetch has failed: shorter than any payload. */
struct wire_failure {
    uint32_t magic;
    int32_t status; /* -errno */
    uint64_t zero;
};

/* From node 0 to all others in a turn, with TAG_ROOMS: the reported rooms. */
struct wire_rooms {
    uint32_t magic, nodes;
    uint64_t number; /* of the attempt */
    uint64_t room[]; /* by node number */
};

/* --- at the join, from each node to all, in this order --- */

/* The first message; the same in every version, so that other versions can be recognised. */
struct wire_greeting {
    uint32_t magic, version;
    char release[RELEASE_TEXT], host[NODE_HOST];
    uint8_t zero[23];
};

/* The result of a step on a node. */
struct wire_verdict {
    uint32_t magic;
    int32_t status; /* 0, or -errno with a text */
    char why[WHY_TEXT];
};

enum member_state {
    MEMBER_UNMOUNTED, /* it has a command that mounts */
    MEMBER_WAITING,   /* its mount has no catalog yet */
    MEMBER_LIVE,
};
struct wire_member {
    uint32_t magic, state;
    uint32_t nodes, groups;   /* its options; 0: any */
    uint32_t scans, zero;     /* scans: it has a command that scans */
    uint32_t resize, quality; /* of images; 0: unchanged */
    struct world_node node;
    struct digest catalog; /* MEMBER_LIVE */
    /* Of all files, and so of the whole catalog. MEMBER_UNMOUNTED: of a cached catalog, or zeros. */
    struct digest versions;
    uint64_t options, extents, peer_timeout;
};

/* How to wake a courier: mpi/doorbell.h. */
enum { BELL_ADDRESSES = 8 };
struct wire_bell {
    uint32_t magic;
    uint16_t port, addresses;
    uint8_t realm[16]; /* if it is the same, local sockets reach the courier */
    struct {
        uint8_t bytes[16]; /* IPv6, or IPv4 in mapped form */
        uint8_t prefix, zero[7];
    } address[BELL_ADDRESSES];
};

/* These return 0 and the parsed message in *to, or -EBADMSG. */
int wire_message_parse(const void *bytes, size_t n, struct wire_message *to);
/* 0: a failure, and *status its -errno; -EBADMSG: something else, perhaps a payload. */
int wire_failure_parse(const void *bytes, size_t n, int *status);
int wire_rooms_check(const struct wire_rooms *rooms, size_t n, uint32_t nodes);
int wire_greeting_check(const struct wire_greeting *g); /* -EPROTO: valid, but of another version */
int wire_verdict_check(const struct wire_verdict *v);
int wire_member_check(const struct wire_member *m);
int wire_bell_check(const struct wire_bell *b);

size_t wire_length(const struct wire_message *message); /* as sent */
struct wire_failure wire_failure_make(int status);      /* errors that must not be sent become -EIO */
void wire_news_from(struct wire_news *to, const struct node_news *from);
void wire_news_to(struct node_news *to, const struct wire_news *from); /* leaves `version` unchanged */

#endif
