/* A turn of the layout (fs/wire/turn.h): all nodes compute the next layout, compare the results, and take it together.
 *
 *   a server ──ring──▶ its courier ──TURN──▶ node 0 ──BEGIN────▶ all: is your server ready, and how much room has it?
 *                                                   ◀──READY────
 *                                                   ──rooms────▶ all: their servers compute, by one rule
 *                                                   ◀──COMPUTED─
 *                                                   ──SETTLED──▶ all: their servers turn to it
 *
 * Node 0 conducts and also takes part. Nothing changes before SETTLED. So a failure until then (a server dies, or a
 * node does not answer) ends the turn, and all keep their layout. SETTLED then contains the current layout, the reason
 * and the node, because a request waits for it. If only the previous move is not done, nothing is sent: the request
 * will be repeated. */
#ifndef MPI_CONDUCTOR_H
#define MPI_CONDUCTOR_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct conductor;

int conductor_create(struct mail *mail, struct home *home, struct conductor **conductor);
void conductor_destroy(struct conductor *conductor);

/* Our server requests turn number k of this world; earlier requests are obsolete. A turn in progress continues. */
void conductor_ask(struct conductor *conductor, uint64_t k, const struct turn *turn);
void conductor_take(struct conductor *conductor, uint32_t from, const struct wire_message *message);
void conductor_look(struct conductor *conductor); /* checks whether the server has answered */
void conductor_server_came(struct conductor *conductor);
void conductor_server_left(struct conductor *conductor);
void conductor_tick(struct conductor *conductor, uint64_t now);

#endif
