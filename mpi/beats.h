/* Heartbeats while a world forms: each node tells node 0 repeatedly how many steps it has begun. So node 0 can name the
 * nodes that the others wait for. A step may take as long as a scan; only silence ends the join.
 *
 * Not used after the join. The heartbeats are sent and received whenever a node waits: see signals_while_waiting. */
#ifndef MPI_BEATS_H
#define MPI_BEATS_H

#include <stdint.h>

struct nodes;
typedef const char *beats_name(const struct nodes *nodes, uint32_t node);

/* Until beats_end, `nodes` is passed to `name`. */
void beats_begin(uint32_t me, uint32_t count, beats_name *name, const struct nodes *nodes);
void beats_end(void);

/* This node has begun a step, and waits for the others; the step is over for this node. */
void beats_step(void);
void beats_step_over(void);
/* On node 0, while it waits: -EIO if nothing was heard from a node for too long, which was reported. */
int beats_check(void);

#endif
