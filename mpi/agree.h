/* The nodes of a world while it forms: all of MPI that waits is here. After the join nothing of it is called.
 *
 * Every step of a join ends in agree_on: a node that failed says why, the first of them is reported with its name by
 * node 0, and all leave the join. Waiting sleeps, since a step may take as long as a scan of the source. */
#ifndef MPI_AGREE_H
#define MPI_AGREE_H

#include "fs/base/str.h"
#include "mpi/wire.h"

struct nodes {
    uint32_t me, count;
    uint8_t world[16];       /* uuid: no secret, names of sockets have it */
    uint64_t secret;         /* of its couriers */
    char (*host)[NODE_HOST]; /* by number */
};

/* MPI is up. 0; else it has been reported, as by all functions below. */
int agree_begin(struct nodes *nodes);
void agree_end(struct nodes *nodes);

/* How a step went here: 0, or -errno and why. 0 when it went well everywhere, else -ECANCELED. */
int agree_on(const struct nodes *nodes, int error, const struct str *why);
/* The same, and from all, when it went well everywhere, a piece of n bytes: *all has them by number, malloc'd. */
int agree_collect(const struct nodes *nodes, int error, const struct str *why, const void *mine, size_t n, void *all);
/* Everybody has the same facts and refuses: node 0 says so. -ECANCELED. */
int agree_refuse(const struct nodes *nodes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From one to all. */
int agree_share(const struct nodes *nodes, uint32_t from, void *bytes, size_t n);
/* From one to those that want it, of any length; all call it, and those that do not want it give no bytes. */
int agree_share_some(const struct nodes *nodes, uint32_t from, bool want, void *bytes, size_t n);

/* "node 3 (host)"; valid until the fourth next call. */
const char *agree_name(const struct nodes *nodes, uint32_t node);

#endif
