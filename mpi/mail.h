/* Letters to the other couriers: messages of one size, each on its way by itself, and the bells that tell of them.
 *
 * Bells are rung once for all that one turn of the loop has sent. When MPI or memory fails the world is over: that is
 * said once, and `broken` from then on. */
#ifndef MPI_MAIL_H
#define MPI_MAIL_H

#include "mpi/doorbell.h"
#include "mpi/post.h"
#include "mpi/wire.h"

struct mail_peer {
    bool gone;         /* its server has ended, and no other one comes */
    bool quit;         /* its courier leaves */
    bool ring;         /* it is to be rung */
    bool news_busy;    /* the last news to it have not left yet */
    uint64_t ping_at;  /* since when a PONG is awaited; 0: none is */
    uint64_t ping_due; /* when to ask for the next */
};

struct mail {
    uint32_t me, nodes;
    struct posts *post;
    struct doorbell *doorbell;
    struct mail_peer *peer; /* by number */
    uint32_t *bell;         /* whom to ring: `bells` of them */
    uint32_t bells;
    uint64_t ping_lost; /* ns without a PONG after which messages may be lost */
    bool broken;
};

/* `post` and `doorbell` are borrowed; `post` is destroyed first. 0 or -ENOMEM. */
int mail_init(struct mail *mail, uint32_t me, uint32_t nodes, struct posts *post, struct doorbell *doorbell);
void mail_fini(struct mail *mail);

/* The message is copied, and gets its magic number. `busy` (NULL: nobody asks) is true until it has left. */
void mail_say(struct mail *mail, uint32_t to, const struct wire_message *message, bool *busy);
void mail_say_all(struct mail *mail, const struct wire_message *message); /* but to those who quit */
void mail_want_bell(struct mail *mail, uint32_t node);
void mail_ring(struct mail *mail); /* those for whom a bell is wanted */
void mail_fail(struct mail *mail, int error, const char *what);

/* Do messages to and from a peer arrive? When a TCP connection was reset, MPI makes it again and says nothing of the
 * messages that were lost with it. MPI delivers messages in order. So it delivers none of those that follow, and all
 * its calls succeed.
 *
 * Each peer that MPI reaches by a socket gets a PING now and then. Its courier answers with PONG, without its server.
 * Bells take another way, UDP. If a peer answers bells all the time and does not answer the PING, messages are lost.
 * After a silence of the network TCP tries again only when as much time has passed again: so bells must have been
 * answered for as long, and for as long as the silence may be older than the PING.
 *
 * On a slow link a PONG waits behind all payloads that the peer may have on their way to us at once, about 20 MB. So a
 * silence must be a long one: meanwhile what the peer keeps is read from the source, and a world that ended in vain
 * costs more.
 *
 * To be called once a second; asks when it is time. timeout: peer_timeout. */
bool mail_is_lost(struct mail *mail, uint32_t node, uint64_t timeout, uint64_t now);
void mail_heard(struct mail *mail, uint32_t from); /* PONG, or what it sends only once it has heard us */

#endif
