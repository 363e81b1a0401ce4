/* The network of the simulation: couriers in one communicator per world, and what mpi/post.h, agree.h, doorbell.h,
 * sockets.h and signals.h promise to the real courier, by one thread that delivers what is due.
 *
 * One simulated thread runs at a time, so nothing here has a lock. */
#ifndef TESTS_SIM_NET_H
#define TESTS_SIM_NET_H

#include "tests/sim/sched.h"

#include <stddef.h>

enum { NET_NODES = 8 };

struct net_world;

void net_begin(void); /* starts the thread that delivers */

/* A communicator of couriers. Worlds are never freed: a courier that was killed may still be named in one. */
struct net_world *net_world_new(uint32_t count);
/* The calling thread is the courier of this rank from now on. */
void net_enter(struct net_world *world, uint32_t rank);
/* The calling courier has ended; the launcher ends the others when it did not end in order. */
void net_leave(bool in_order);
/* As the launcher does when a courier was killed: the others are asked to leave. */
void net_killed(struct net_world *world, uint32_t rank);
void net_signal(struct net_world *world, uint32_t rank); /* SIGTERM to one */

/* Faults, between two nodes of any world: messages in this direction wait until that time. */
void net_silence(uint32_t from, uint32_t to, uint64_t until);
/* A connection was reset: some of what is on its way is lost, and all that is sent later until the world ends.
 * Nobody is told. Open MPI 4.1 does so. */
void net_cut(struct net_world *world, uint32_t from, uint32_t to);
/* Until a message of this rank is on its way. */
void net_await_message(const struct net_world *world, uint32_t from, uint64_t until);
void net_delay(uint64_t most); /* each message takes up to so long from now on */

#endif
