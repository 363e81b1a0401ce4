/* Deliveries: what other nodes request from our server.
 *
 *   message FETCH ─┬─▶ ring SERVE ─▶ ring REPLY ─▶ the answer leaves from the slot ─▶ ring SENT
 *                  └─▶ tier_view_answer ─▶ the answer leaves from a buffer, if the RAM tier has the data
 *
 * If the RAM tier does not have it, a FETCH with FETCH_SHARED fails at once.
 *
 *   state        meaning                                     valid fields
 *   FREE         may be used for another question            generation, wait_busy
 *   OPEN         our server, or its successor, must answer   peer, asked; wait_at while there is no server
 *   WAITING      the server has said that it must wait       peer, asked, wait_at
 *   ANSWERING    the answer is being sent                    peer, asked, again; hold and slot (an answer of the
 *                                                            server), viewed (ours), or neither (failure)
 *
 * A delivery belongs to the peer: a new server gets the questions that the previous one has not answered. While there
 * is no server, and while the server must wait, WAIT is sent to the peer repeatedly. */
#ifndef MPI_DELIVERY_H
#define MPI_DELIVERY_H

#include "mpi/home.h"
#include "mpi/mail.h"
#include "mpi/spoil.h"

struct deliveries;

/* spoil NULL: no faults. timeout: peer_timeout in nanoseconds. All arguments are borrowed. 0 or -ENOMEM. */
int deliveries_create(struct mail *mail, struct home *home, struct spoil *spoil, uint64_t timeout,
                      struct deliveries **deliveries);
void deliveries_destroy(struct deliveries *deliveries);

void deliveries_add(struct deliveries *deliveries, uint32_t from, const struct wire_message *fetch);
void deliveries_reply(struct deliveries *deliveries, const struct ring_message *reply); /* from the server */
void deliveries_server_came(struct deliveries *deliveries);
void deliveries_server_left(struct deliveries *deliveries);
void deliveries_server_ended(struct deliveries *deliveries); /* there will be no other server */

/* Sends due WAITs; those in the server's name only while it is alive (`beats`). */
void deliveries_tick(struct deliveries *deliveries, uint64_t now, bool beats);
uint64_t deliveries_next(const struct deliveries *deliveries);
unsigned deliveries_open(const struct deliveries *deliveries); /* number that are not FREE */

#endif
