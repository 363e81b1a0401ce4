/* A turn of the layout (fs/wire/turn.h): all nodes compute the next one, compare what came of it, and take it together.
 *
 *   a server ──ring──▶ its courier ──TURN──▶ node 0 ──BEGIN────▶ all: is your server ready, and how much room has it?
 *                                                   ◀──READY────
 *                                                   ──rooms────▶ all: their servers compute, by one rule
 *                                                   ◀──COMPUTED─
 *                                                   ──SETTLED──▶ all: their servers turn to it
 *
 * Node 0 conducts, and takes part as all do. Nothing has changed before SETTLED, so whatever goes wrong until then, a
 * server that dies or a node that does not answer, ends the turn with all as it was. That is also SETTLED, with the
 * layout as it is, and why, and on which node: somebody waits for it. Where only the move before is not done, nobody is
 * told anything: it is asked for again. */
#ifndef MPI_CONDUCTOR_H
#define MPI_CONDUCTOR_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct conductor;

int conductor_create(struct mail *mail, struct home *home, struct conductor **conductor);
void conductor_destroy(struct conductor *conductor);

/* Our server wants a turn, as number k of this world: what was asked before the last one was taken is void. One that is
 * under way goes on alone. */
void conductor_ask(struct conductor *conductor, uint64_t k, const struct turn *turn);
void conductor_take(struct conductor *conductor, uint32_t from, const struct wire_message *message);
void conductor_look(struct conductor *conductor); /* has the server answered? */
void conductor_server_came(struct conductor *conductor);
void conductor_server_left(struct conductor *conductor);
void conductor_tick(struct conductor *conductor, uint64_t now);

#endif
