/* MPI's TCP sockets. courier-main.c configures Open MPI to keep them in one epoll descriptor, which is found here among
 * this process's descriptors. So a courier that sleeps on it wakes when TCP data arrives, without a bell. */
#ifndef MPI_SOCKETS_H
#define MPI_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/* An epoll descriptor that watches a listening TCP socket, like MPI's; MPI still owns it. -ENOENT: there is none,
 * because MPI does not use TCP, or uses poll; other -errno. */
int sockets_find(void);
/* Does it watch a connection to this address (IPv6, or IPv4 in mapped form)? */
bool sockets_reach(int epoll, const uint8_t address[16]);

#endif
