/* Pickups: what our server wants of other nodes.
 *
 *   ring FETCH ─▶ message FETCH ─▶ … the answer comes into the slot ─▶ ring FETCHED
 *
 * The answer is one MPI message with a tag of its own: a payload, or a failure. It is received right into the slot, for
 * which the receive is posted before the question is asked.
 *
 *   state    list            its slot
 *   QUEUED   queued          waits, for others of this peer are before it
 *   ASKED    asked           is MPI's, until the answer with its tag is there
 *
 * Of the pickups from one peer WIRE_IN_FLIGHT are asked for, the others queue here; so a peer never has more to do for
 * us than for anybody else. A pickup belongs to the ring that it came from: when the server has died meanwhile, the old
 * ring stays mapped for it and nobody is told. */
#ifndef MPI_PICKUP_H
#define MPI_PICKUP_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct pickups;

/* last_tag: the highest that MPI has. `mail` and `home` are borrowed. 0 or -ENOMEM. */
int pickups_create(struct mail *mail, struct home *home, int last_tag, struct pickups **pickups);
void pickups_destroy(struct pickups *pickups);

void pickups_add(struct pickups *pickups, const struct ring_message *fetch); /* from the server */
void pickups_wait(struct pickups *pickups, uint32_t node, uint32_t tag);     /* WAIT has come */
void pickups_node_gone(struct pickups *pickups, uint32_t node);              /* as `mail` says */
void pickups_server_came(struct pickups *pickups);
void pickups_server_left(struct pickups *pickups);

/* Peers that have not heard the bell are rung again. */
void pickups_tick(struct pickups *pickups, uint64_t now);
uint64_t pickups_next(const struct pickups *pickups);
unsigned pickups_asked(const struct pickups *pickups); /* how many */

#endif
