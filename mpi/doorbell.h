/* Wakes couriers that sleep. MPI may have no descriptor that a process could sleep on, so the sender of a message also
 * rings: it sends a datagram. A lost datagram only costs time, because sleepers also check for messages regularly.
 *
 * Couriers in one network namespace of one machine use local sockets, others UDP. Which of a node's addresses is
 * reachable is found by trying: all that differ from ours are rung until a bell arrives from the node; from then on the
 * address that it came from. Datagrams contain a secret of the world's couriers, so that only a process that sees them
 * can forge one.
 *
 * A courier that MPI reaches by a socket that wakes it (mpi/sockets.h) replies HEARD to a bell, and is not rung for the
 * next QUIET_MS. */
#ifndef MPI_DOORBELL_H
#define MPI_DOORBELL_H

#include "mpi/wire.h"

struct doorbell;

/* For node `me` in the world with this uuid, which is not secret. *address is for the other nodes. 0 or -errno. */
int doorbell_create(uint32_t me, const uint8_t world[16], uint64_t secret, struct wire_bell *address,
                    struct doorbell **doorbell);
void doorbell_destroy(struct doorbell *doorbell);
/* The checked addresses of all nodes, by number; they are copied. */
int doorbell_connect(struct doorbell *doorbell, const struct wire_bell *all, uint32_t nodes);

/* This descriptor wakes the courier when MPI can read: see sockets_find. */
void doorbell_sleeps_on(struct doorbell *doorbell, int sockets);
/* All other nodes are connected to that descriptor: no bell is needed. */
bool doorbell_is_idle(const struct doorbell *doorbell);

/* Two descriptors, of the local socket and of UDP, readable when a bell arrives; -1: none. */
void doorbell_fds(const struct doorbell *doorbell, int fds[2]);
void doorbell_ring(struct doorbell *doorbell, uint32_t node);
bool doorbell_answer(struct doorbell *doorbell, int fd); /* takes those of fds[fd]; true: one is of this world */

/* Has a courier ended without a report by MPI? Its local socket, or MPI's connection to it, is missing for a while.
 * Call it about once per second; each call examines some of the nodes. */
bool doorbell_misses(struct doorbell *doorbell, uint32_t *node);
/* Does MPI have a socket to this courier, which then answers bells? As of the last doorbell_misses. */
bool doorbell_reaches(const struct doorbell *doorbell, uint32_t node);
/* For how long it has been answering bells, which are sent once per second: nanoseconds; 0: it does not. */
uint64_t doorbell_answered(const struct doorbell *doorbell, uint32_t node);

#endif
