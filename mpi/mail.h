/* Messages to other couriers, and the bells that announce them. All messages have the same format; each is sent
 * separately.
 *
 * Bells are rung once per turn of the loop. If MPI or memory fails, the world ends: this is reported once, and
 * `broken` is set. */
#ifndef MPI_MAIL_H
#define MPI_MAIL_H

#include "mpi/doorbell.h"
#include "mpi/post.h"
#include "mpi/wire.h"

struct mail_peer {
    bool gone;         /* its server has ended, and there will be no other */
    bool quit;         /* its courier leaves */
    bool ring;         /* it must be rung */
    bool news_busy;    /* the last news to it are still being sent */
    uint64_t ping_at;  /* when the unanswered PING was sent; 0: none */
    uint64_t ping_due; /* when to send the next one */
};

struct mail {
    uint32_t me, nodes;
    struct posts *post;
    struct doorbell *doorbell;
    struct mail_peer *peer; /* by node number */
    uint32_t *bell;         /* numbers of the nodes to ring */
    uint32_t bells;
    uint64_t ping_lost; /* nanoseconds without a PONG after which messages may be lost */
    bool broken;
};

/* `post` and `doorbell` are borrowed; `post` is destroyed first. 0 or -ENOMEM. */
int mail_init(struct mail *mail, uint32_t me, uint32_t nodes, struct posts *post, struct doorbell *doorbell);
void mail_fini(struct mail *mail);

/* The message is copied and gets its magic number. `busy` (or NULL) is true until it was sent. */
void mail_say(struct mail *mail, uint32_t to, const struct wire_message *message, bool *busy);
void mail_say_all(struct mail *mail, const struct wire_message *message); /* except those that have left */
void mail_want_bell(struct mail *mail, uint32_t node);
void mail_ring(struct mail *mail); /* rings all nodes that need it */
void mail_fail(struct mail *mail, int error, const char *what);

/* Do messages to and from a peer arrive? If a TCP connection was reset, MPI reconnects and does not report the messages
 * that were lost with it. MPI delivers messages in order, so it delivers none of the following messages, and all its
 * calls succeed.
 *
 * Each peer that MPI reaches by a socket gets a PING regularly. Its courier answers with PONG, without its server.
 * Bells take another way, UDP. If a peer keeps answering bells but not the PING, messages are lost. After a network
 * outage, TCP may pause for as long again before it retries. So bells must have been answered for that long, and for as
 * long as the outage may have begun before the PING.
 *
 * On a slow link, a PONG waits behind all payloads that the peer may be sending us, about 20 MB. So the timeout is
 * long: meanwhile the peer's data is read from the source, which costs less than ending a world needlessly.
 *
 * Call it once per second; it sends a PING when one is due. timeout: peer_timeout. */
bool mail_is_lost(struct mail *mail, uint32_t node, uint64_t timeout, uint64_t now);
/* PONG, or anything that it sends only after it has received our messages */
void mail_heard(struct mail *mail, uint32_t from);

#endif
