/* A turn of the layout (fs/wire/turn.h): all nodes compute the next one, compare what came of it, and take it together.
 *
 *   a server ──ring──▶ its courier ──TURN──▶ node 0 ──BEGIN────▶ all: is your server ready, and how much room has it?
 *                                                   ◀──READY────
 *                                                   ──rooms────▶ all: their servers compute and save, by one rule
 *                                                   ◀──COMPUTED─
 *                                                   ──SETTLED──▶ all: their servers turn to it
 *
 * Node 0 conducts, and takes part as all do. Nothing has changed before SETTLED, so whatever goes wrong until then, a
 * server that dies or a node that does not answer, ends the turn with all as it was, and whoever wants it asks again.
 * That a turn for room failed is told all, with the layout as it is, for staging waits until it has been tried. */
#ifndef MPI_CONDUCTOR_H
#define MPI_CONDUCTOR_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct conductor;

int conductor_create(struct mail *mail, struct home *home, struct conductor **conductor);
void conductor_destroy(struct conductor *conductor);

/* Our server wants a turn. One that is under way goes on alone; one that was taken already is not taken again. */
void conductor_ask(struct conductor *conductor, const struct turn *turn);
void conductor_take(struct conductor *conductor, uint32_t from, const struct wire_message *message);
void conductor_look(struct conductor *conductor); /* has the server answered? */
void conductor_server_came(struct conductor *conductor);
void conductor_server_left(struct conductor *conductor);
void conductor_tick(struct conductor *conductor, uint64_t now);

#endif
