/* What goes between this node's server and its peers: pickups, deliveries, turns, and beside them commands, news, the
 * end of a server, of a node, of the world. Here it is told whose each message is. */
#ifndef MPI_FLIGHT_H
#define MPI_FLIGHT_H

#include "mpi/doorbell.h"
#include "mpi/home.h"
#include "mpi/post.h"
#include "mpi/spoil.h"

struct flight;

struct flight_config {
    uint32_t me, nodes;
    uint64_t timeout; /* peer_timeout: nanoseconds */
    int last_tag;     /* the highest that MPI has */
    struct home *home;
    struct posts *post;
    struct doorbell *doorbell;
    struct spoil *spoil; /* NULL: none */
};

/* Posts the receives for messages. All that is borrowed outlives it; `post` is destroyed before it. */
int flight_create(const struct flight_config *config, struct flight **flight);
void flight_destroy(struct flight *flight);

/* From the server. */
void flight_take(struct flight *flight, const struct ring_message *message);
/* Look at the state of home: a server has come, or is gone, for a while or for good. */
void flight_look(struct flight *flight);
/* What is due by the clock: WAITs, news, peers that have not heard the bell. */
void flight_tick(struct flight *flight, uint64_t now);
uint64_t flight_next(const struct flight *flight);
/* Ring those who were sent something since the last call. */
void flight_ring(struct flight *flight);

/* Has a peer's connection lost messages? The peer is there, and nothing that we send comes back. To be called once a
 * second. */
bool flight_misses(struct flight *flight, uint64_t now, uint32_t *node);

/* This courier leaves: say so to all. */
void flight_quit(struct flight *flight);

bool flight_asks(const struct flight *flight);        /* an answer is awaited */
bool flight_pending(const struct flight *flight);     /* an answer is awaited or owed, or a send has not ended */
bool flight_world_ended(const struct flight *flight); /* no node has a server any more, or all others quit */
bool flight_quit_seen(const struct flight *flight);   /* another one leaves: the world ends */
bool flight_broken(const struct flight *flight);      /* MPI or memory failed; it has been reported */

#endif
