/* The nodes of a world while it forms. All waiting MPI calls are here; after the join none of these functions is
 * called.
 *
 * Each step of a join ends in agree_on: a node that failed sends the reason; node 0 reports the first failure with the
 * node's name; all leave the join. Waiting means sleeping, since a step may take as long as a scan of the source. */
#ifndef MPI_AGREE_H
#define MPI_AGREE_H

#include "fs/base/str.h"
#include "mpi/wire.h"

struct nodes {
    uint32_t me, count;
    uint8_t world[16];       /* uuid; not secret: it is part of sockets' names */
    uint64_t secret;         /* shared by its couriers */
    char (*host)[NODE_HOST]; /* by node number */
};

/* Call it when MPI is initialised. 0; otherwise the error was reported, as in all functions below. */
int agree_begin(struct nodes *nodes);
void agree_end(struct nodes *nodes);

/* The result of a step on this node: 0, or -errno and why. Returns 0 if it succeeded everywhere, else -ECANCELED. */
int agree_on(const struct nodes *nodes, int error, const struct str *why);
/* The same, and if the step succeeded everywhere, gathers n bytes from each node: *all has them by node number,
 * malloc'd. */
int agree_collect(const struct nodes *nodes, int error, const struct str *why, const void *mine, size_t n, void *all);
/* All nodes know the same facts and refuse: node 0 reports it. -ECANCELED. */
int agree_refuse(const struct nodes *nodes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From one node to all. */
int agree_share(const struct nodes *nodes, uint32_t from, void *bytes, size_t n);
/* From one node to those that want it, of any length. All nodes call it; those that do not want it pass no buffer. */
int agree_share_some(const struct nodes *nodes, uint32_t from, bool want, void *bytes, size_t n);

/* "node 3 (host)"; valid until the fourth call after this one */
const char *agree_name(const struct nodes *nodes, uint32_t node);

#endif
