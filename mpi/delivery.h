/* Deliveries: what other nodes want of our server.
 *
 *   message FETCH ─▶ ring SERVE ─▶ ring REPLY ─▶ the answer leaves from the slot ─▶ ring SENT
 *
 *   state        what it means                                      which fields count
 *   FREE         may be used for another question                   generation, wait_busy
 *   OPEN         our server has the question, or the next one will  peer, asked; wait_at while there is no server
 *   WAITING      the server has said that it must wait              peer, asked, wait_at
 *   ANSWERING    the answer is leaving                              peer, asked, hold and slot (NULL: failure), again
 *
 * A delivery belongs to the peer: a new server is given what the one before has not answered. While no server is there,
 * and while it must wait, the peer is told WAIT, repeatedly. */
#ifndef MPI_DELIVERY_H
#define MPI_DELIVERY_H

#include "mpi/home.h"
#include "mpi/mail.h"
#include "mpi/spoil.h"

struct deliveries;

/* spoil: NULL: no answer is spoilt. timeout: peer_timeout, nanoseconds. All is borrowed. 0 or -ENOMEM. */
int deliveries_create(struct mail *mail, struct home *home, struct spoil *spoil, uint64_t timeout,
                      struct deliveries **deliveries);
void deliveries_destroy(struct deliveries *deliveries);

void deliveries_add(struct deliveries *deliveries, uint32_t from, const struct wire_message *fetch);
void deliveries_reply(struct deliveries *deliveries, const struct ring_message *reply); /* from the server */
void deliveries_server_came(struct deliveries *deliveries);
void deliveries_server_left(struct deliveries *deliveries);
void deliveries_server_ended(struct deliveries *deliveries); /* for good */

/* WAITs are said; those of a server only while it beats. */
void deliveries_tick(struct deliveries *deliveries, uint64_t now, bool beats);
uint64_t deliveries_next(const struct deliveries *deliveries);
unsigned deliveries_open(const struct deliveries *deliveries); /* how many are not FREE */

#endif
