/* Requests on their way between this node's server and its peers.
 *
 *   fetch   our server wants values of a peer:  ring FETCH ─▶ message FETCH ─▶ … answer into the slot ─▶ ring FETCHED
 *   serve   a peer wants values of ours:  message FETCH ─▶ ring SERVE ─▶ ring REPLY ─▶ answer from the slot ─▶ ring
 * SENT
 *
 * The answer to a fetch is one MPI message with a tag of its own: a payload, or a failure. It is received right into
 * the slot, for which the receive is posted before the question is asked. Whoever's server has the question says WAIT
 * every quarter of peer_timeout once the server has asked for it, and while no server is there.
 *
 * Of the fetches from one peer MOST_IN_FLIGHT are on their way, the others queue here; so a peer never has more to do
 * for us than it has for anybody else. */
#ifndef MPI_FLIGHT_H
#define MPI_FLIGHT_H

#include "mpi/doorbell.h"
#include "mpi/faults.h"
#include "mpi/link.h"
#include "mpi/post.h"

struct flight;

enum { MOST_IN_FLIGHT = 64, MESSAGES_POSTED = 32 };

struct flight_config {
    uint32_t me, nodes;
    uint64_t timeout; /* peer_timeout: nanoseconds */
    int last_tag;     /* the highest that MPI has */
    struct link *link;
    struct post *post;
    struct doorbell *doorbell;
    struct faults *faults; /* NULL: none */
};

/* Posts the receives for messages. All that is borrowed outlives it; `post` is destroyed before it. */
int flight_create(const struct flight_config *config, struct flight **flight);
void flight_destroy(struct flight *flight);

/* From the server. */
void flight_take(struct flight *flight, const struct ring_message *message);
/* Look at the state of the link: a server has come, or is gone, for a while or for good. */
void flight_link(struct flight *flight);
/* What is due by the clock: WAITs, news, peers that have not heard the bell. */
void flight_tick(struct flight *flight, uint64_t now);
uint64_t flight_next(const struct flight *flight);
/* Ring those who were sent something since the last call. */
void flight_ring(struct flight *flight);

/* This courier leaves: say so to all. */
void flight_quit(struct flight *flight);

bool flight_asks(const struct flight *flight);        /* an answer is awaited */
bool flight_pending(const struct flight *flight);     /* an answer is awaited or owed, or a send has not ended */
bool flight_world_ended(const struct flight *flight); /* no node has a server any more, or all others quit */
bool flight_quit_seen(const struct flight *flight);   /* another one leaves: the world ends */
bool flight_broken(const struct flight *flight);      /* MPI or memory failed; it has been reported */

#endif
