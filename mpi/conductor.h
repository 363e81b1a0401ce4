/* Dealing again what has no owner, in a living world, when staging has ended everywhere and compression made room.
 *
 *   node 0's server ──▶ node 0 ──DEAL───▶ all: ask their servers for their room
 *                              ◀──ROOM───
 *                              ──rooms──▶ all: their servers deal, by the same rule
 *                              ◀──DEALT──
 *                              ──SETTLED▶ all: their servers turn to it
 *
 * Node 0 conducts, and takes part as all do. Nothing has changed before SETTLED, so whatever goes wrong until then, a
 * server that dies or a node that does not answer, ends the deal with the layout as it was. */
#ifndef MPI_CONDUCTOR_H
#define MPI_CONDUCTOR_H

#include "mpi/home.h"
#include "mpi/mail.h"

struct conductor;

int conductor_create(struct mail *mail, struct home *home, struct conductor **conductor);
void conductor_destroy(struct conductor *conductor);

/* Node 0: its server wants a deal after this round of staging. One that is under way goes on alone. */
void conductor_begin(struct conductor *conductor, uint64_t round);
void conductor_take(struct conductor *conductor, uint32_t from, const struct wire_message *message);
void conductor_look(struct conductor *conductor); /* has the server answered? */
void conductor_server_came(struct conductor *conductor);
void conductor_server_left(struct conductor *conductor);
void conductor_tick(struct conductor *conductor, uint64_t now);

#endif
