/* Pickups: what our server requests from other nodes.
 *
 *   ring FETCH ─▶ message FETCH ─▶ … the answer arrives in the slot ─▶ ring FETCHED
 *
 * The answer is one MPI message with its own tag: a payload, or a failure. It is received directly into the slot; the
 * receive is posted before the question is sent.
 *
 *   state    list            its slot
 *   QUEUED   queued          waits behind other pickups from this peer
 *   ASKED    asked           MPI has it, until the answer with its tag has arrived
 *
 * At most WIRE_IN_FLIGHT pickups from a peer are in progress, the others queue here. So a peer never has more work for
 * us than for any other node. A pickup belongs to the ring that it came from: if the server dies meanwhile, the old
 * ring stays mapped for the answer, which is ignored. */
#ifndef MPI_PICKUP_H
#define MPI_PICKUP_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct pickups;

/* last_tag: the largest that MPI accepts. `mail` and `home` are borrowed. 0 or -ENOMEM. */
int pickups_create(struct mail *mail, struct home *home, int last_tag, struct pickups **pickups);
void pickups_destroy(struct pickups *pickups);

void pickups_add(struct pickups *pickups, const struct ring_message *fetch); /* from the server */
void pickups_wait(struct pickups *pickups, uint32_t node, uint32_t tag);     /* a WAIT has arrived */
void pickups_node_gone(struct pickups *pickups, uint32_t node);              /* see `mail` */
void pickups_server_came(struct pickups *pickups);
void pickups_server_left(struct pickups *pickups);

/* Rings peers again that did not react. */
void pickups_tick(struct pickups *pickups, uint64_t now);
uint64_t pickups_next(const struct pickups *pickups);
unsigned pickups_asked(const struct pickups *pickups); /* number in state ASKED */

#endif
