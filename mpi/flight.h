/* The traffic between this node's server and its peers: pickups, deliveries, turns; also commands, news, and the ends
 * of servers, nodes and the world. This module dispatches all messages. */
#ifndef MPI_FLIGHT_H
#define MPI_FLIGHT_H

#include "mpi/doorbell.h"
#include "mpi/home.h"
#include "mpi/post.h"
#include "mpi/spoil.h"

struct flight;

struct flight_config {
    uint32_t me, nodes;
    uint64_t timeout; /* peer_timeout in nanoseconds */
    int last_tag;     /* the largest that MPI accepts */
    struct home *home;
    struct posts *post;
    struct doorbell *doorbell;
    struct spoil *spoil; /* NULL: none */
};

/* Posts the receives for messages. All borrowed objects must outlive it, except `post`, which is destroyed before
 * it. */
int flight_create(const struct flight_config *config, struct flight **flight);
void flight_destroy(struct flight *flight);

/* A message from the server. */
void flight_take(struct flight *flight, const struct ring_message *message);
/* Check the state of home: a server has come, or is gone for a while or permanently. */
void flight_look(struct flight *flight);
/* Do what is due: WAITs, news, bells for peers that did not react. */
void flight_tick(struct flight *flight, uint64_t now);
uint64_t flight_next(const struct flight *flight);
/* Ring the peers to which something was sent since the last call. */
void flight_ring(struct flight *flight);

/* Were messages on a peer's connection lost? The peer is alive, but does not answer. Call it once per second. */
bool flight_misses(struct flight *flight, uint64_t now, uint32_t *node);

/* Tell all others that this courier leaves. */
void flight_quit(struct flight *flight);

bool flight_asks(const struct flight *flight);        /* an answer is awaited */
bool flight_pending(const struct flight *flight);     /* an answer is awaited or due, or a send has not ended */
bool flight_world_ended(const struct flight *flight); /* no node has a server any more, or all others have left */
bool flight_quit_seen(const struct flight *flight);   /* another courier leaves: the world ends */
bool flight_broken(const struct flight *flight);      /* MPI or memory failed, and it was reported */

#endif
