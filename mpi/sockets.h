/* The sockets that MPI reads: Open MPI keeps those of its TCP transport in one epoll descriptor, when
 * courier-main.c has told it to, and that is found among this process's descriptors. So what comes by TCP wakes who
 * sleeps on it, without a bell. */
#ifndef MPI_SOCKETS_H
#define MPI_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/* An epoll descriptor that watches a listening socket of TCP, as that of MPI does; it stays its owner's. -ENOENT: there
 * is none, because MPI uses no TCP, or poll; other -errno. */
int sockets_find(void);
/* It watches a connection to this address (IPv6, or IPv4 mapped into it). */
bool sockets_reach(int epoll, const uint8_t address[16]);

#endif
