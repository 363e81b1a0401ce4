/* What couriers say to each other: fixed messages, described byte by byte in mpi/FORMAT. Nothing here calls MPI.
 *
 * A courier believes nothing that comes from another one before it has passed here. */
#ifndef MPI_WIRE_H
#define MPI_WIRE_H

#include "fs/base/hash.h"
#include "fs/wire/ring.h"

enum { WIRE_MAGIC = 0x77666c64, WIRE_VERSION = 11, RELEASE_TEXT = 32, WHY_TEXT = 400 };
enum { WIRE_IN_FLIGHT = 64 }; /* FETCHes of one node to another without an answer, at most */

/* Tags of MPI messages. That of an answer is chosen by who asks, a new one each time. */
enum wire_tag { TAG_MESSAGE = 1, TAG_ROOMS = 2, TAG_ANSWER = 1024 };

enum wire_kind {
    WIRE_FETCH = 1, /* send these values of a file, with this tag */
    WIRE_WAIT,      /* the answer with this tag will come: the source is slow, or a server starts again */
    WIRE_GONE,      /* this node's server has ended, and no other one follows it in this world */
    WIRE_COMMAND,   /* from a server to all others */
    WIRE_NEWS,      /* what a node tells of itself */
    WIRE_QUIT,      /* this courier leaves: the world ends */
    /* a turn (mpi/conductor.h); of node 0, or to it: */
    WIRE_TURN,     /* this one is asked for, as turn k */
    WIRE_BEGIN,    /* are you ready for it, and how much room is left to you? */
    WIRE_READY,    /* yes, so much; or why not */
    WIRE_COMPUTED, /* by the rooms of all, this would be the layout */
    WIRE_SETTLED,  /* this is the layout; or the turn failed, and where */
    /* mpi/mail.h */
    WIRE_PING, /* do you hear me? */
    WIRE_PONG, /* yes */
};

/* struct node_news without its version; any numbers may be in it. */
struct wire_news {
    uint64_t word[sizeof(struct node_news) / sizeof(uint64_t) - 1];
};

/* What a kind does not use is 0, and what stands behind it is not sent. */
struct wire_message {
    uint32_t magic, kind;
    uint32_t tag;                /* FETCH, WAIT */
    uint32_t file, value, count; /* FETCH */
    uint32_t flags;              /* FETCH: enum fetch_flags */
    uint32_t command;            /* COMMAND: enum world_command */
    int32_t status;              /* READY, COMPUTED, SETTLED: 0, or -errno */
    uint32_t zero;
    uint64_t token;       /* COMMAND: what goes with it; BEGIN, READY, COMPUTED: the number of the try; SETTLED, where
                             it failed: on which node */
    uint64_t room;        /* READY */
    struct digest layout; /* COMPUTED, SETTLED */
    uint64_t k;           /* TURN, BEGIN, SETTLED */
    struct turn turn;     /* TURN, BEGIN, SETTLED */
    union {
        struct wire_news news;             /* NEWS */
        struct fetch_part part[MANY_MOST]; /* FETCH with FETCH_MANY: `count` of them */
    };
};
enum { WIRE_SHORT = offsetof(struct wire_message, news), WIRE_LONG = sizeof(struct wire_message) };

/* What comes in place of a payload where a fetch has failed: shorter than any payload. */
struct wire_failure {
    uint32_t magic;
    int32_t status; /* -errno */
    uint64_t zero;
};

/* From node 0 to all others in a turn, with TAG_ROOMS: what each has told. */
struct wire_rooms {
    uint32_t magic, nodes;
    uint64_t number; /* of the try */
    uint64_t room[]; /* by number */
};

/* --- at the join, from each to all, in this order --- */

/* First, and the same in every version for ever, so that versions that differ can be told. */
struct wire_greeting {
    uint32_t magic, version;
    char release[RELEASE_TEXT], host[NODE_HOST];
    uint8_t zero[23];
};

/* How a step went on a node. */
struct wire_verdict {
    uint32_t magic;
    int32_t status; /* 0, or -errno with words */
    char why[WHY_TEXT];
};

enum member_state {
    MEMBER_UNMOUNTED, /* there is a command that mounts */
    MEMBER_WAITING,   /* its mount has no catalog yet */
    MEMBER_LIVE,
};
struct wire_member {
    uint32_t magic, state;
    uint32_t nodes, groups;   /* as it was told; 0: any */
    uint32_t scans, zero;     /* scans: it has a command that does */
    uint32_t resize, quality; /* its images; 0: as they are */
    struct world_node node;
    struct digest catalog; /* MEMBER_LIVE */
    /* Of its files, and so of the whole catalog. MEMBER_UNMOUNTED: of one that it has kept, or zeros. */
    struct digest versions;
    uint64_t options, extents, peer_timeout;
};

/* How to wake a courier that sleeps: mpi/doorbell.h. */
enum { BELL_ADDRESSES = 8 };
struct wire_bell {
    uint32_t magic;
    uint16_t port, addresses;
    uint8_t realm[16]; /* the same: local sockets reach it */
    struct {
        uint8_t bytes[16]; /* IPv6, or IPv4 mapped into it */
        uint8_t prefix, zero[7];
    } address[BELL_ADDRESSES];
};

/* All of these: 0, or -EBADMSG. *to is what the bytes say. */
int wire_message_parse(const void *bytes, size_t n, struct wire_message *to);
/* 0: a failure, and *status its -errno; -EBADMSG: something else, perhaps a payload. */
int wire_failure_parse(const void *bytes, size_t n, int *status);
int wire_rooms_check(const struct wire_rooms *rooms, size_t n, uint32_t nodes);
int wire_greeting_check(const struct wire_greeting *g); /* -EPROTO: well-formed, of another version */
int wire_verdict_check(const struct wire_verdict *v);
int wire_member_check(const struct wire_member *m);
int wire_bell_check(const struct wire_bell *b);

size_t wire_length(const struct wire_message *message); /* as it is sent */
struct wire_failure wire_failure_make(int status);      /* any that must not be sent becomes -EIO */
void wire_news_from(struct wire_news *to, const struct node_news *from);
void wire_news_to(struct node_news *to, const struct wire_news *from); /* `version` is left alone */

#endif
