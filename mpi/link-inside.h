/* What link.c and talk.c share. */
#ifndef MPI_LINK_INSIDE_H
#define MPI_LINK_INSIDE_H

#include "mpi/link.h"

/* link.c */
int hold_create(uint32_t nodes, struct hold **hold);
void hold_fds(const struct hold *hold, int fds[ATTACH_FDS]);

/* talk.c */
int link_connect(struct link *l);
bool link_may_come(int error);            /* of link_connect: there is no server now, but perhaps soon */
void link_limit(int socket, int seconds); /* the time that a frame may take */
struct attach_hello link_hello(const struct link *l);
int link_check_welcome(const void *payload, size_t n,
                       struct attach_welcome *to);                /* -EPROTO; -ESTALE: another version */
int link_refused(const void *payload, size_t n, struct str *why); /* the -errno of REFUSED, and its words */

#endif
