/* Wake couriers that sleep: MPI need not have anything that a process could sleep on, so who has sent somebody a
 * message also rings, by a datagram. A lost one costs time and nothing else: sleepers look for messages now and then by
 * themselves.
 *
 * Couriers in one network namespace of one machine use local sockets, others UDP. Which of a node's addresses is in
 * reach is found by trying: all that are not our own are rung until the node has rung us, from then on the one that it
 * rang from. Datagrams carry a secret of the world's couriers, so that nobody who does not see them can forge one.
 *
 * Whom MPI reaches by a socket that it sleeps on (mpi/sockets.h) says so when it is rung, and is rung no more for the
 * next QUIET_MS. */
#ifndef MPI_DOORBELL_H
#define MPI_DOORBELL_H

#include "mpi/wire.h"

struct doorbell;

/* Of node `me` in the world of that uuid, which everybody may know; *address is for the others. 0 or -errno. */
int doorbell_create(uint32_t me, const uint8_t world[16], uint64_t secret, struct wire_bell *address,
                    struct doorbell **doorbell);
void doorbell_destroy(struct doorbell *doorbell);
/* The addresses of all, by number, checked; they are copied. */
int doorbell_connect(struct doorbell *doorbell, const struct wire_bell *all, uint32_t nodes);

/* What MPI reads wakes this courier: see sockets_find. */
void doorbell_sleeps_on(struct doorbell *doorbell, int sockets);
/* All others have been found to be at its other end: no bell is waited for. */
bool doorbell_is_idle(const struct doorbell *doorbell);

/* Two descriptors, each readable when somebody has rung; -1: none. */
void doorbell_fds(const struct doorbell *doorbell, int fds[2]);
void doorbell_ring(struct doorbell *doorbell, uint32_t node);
bool doorbell_answer(struct doorbell *doorbell); /* true: somebody of this world has rung since */

/* Is a courier gone of whom MPI says nothing? Its local socket is gone, or the connection that MPI had to it, and none
 * was made again for a while. To be called about once a second; each call looks at some of the nodes. */
bool doorbell_misses(struct doorbell *doorbell, uint32_t *node);
/* Has MPI a socket to this courier, which answers bells then? As doorbell_misses has seen it last. */
bool doorbell_reaches(const struct doorbell *doorbell, uint32_t node);
/* For how long it has answered them, rung once a second: nanoseconds; 0: it does not. */
uint64_t doorbell_answered(const struct doorbell *doorbell, uint32_t node);

#endif
