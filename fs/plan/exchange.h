/* Exchange: a part of each node's extents goes to other nodes, and as many come. The rule of partial-local shuffling
 * (Nguyen et al.) and, with all of them, of a shuffle within a group (Kumar et al., DIMD, Algorithm 2), for extents of
 * different cost. fs/world/FORMAT says it for readers who want to compute the same.
 *
 * Owners change among extents that cost nearly the same. So each node owns as many as before, and nearly as much. */
#ifndef FS_PLAN_EXCHANGE_H
#define FS_PLAN_EXCHANGE_H

#include <stdint.h>

enum { EXCHANGE_ALL = 1000000 };

struct exchange {
    uint64_t extents;
    uint32_t first, nodes; /* of the group; an extent that none of these owns stays as it is */
    uint32_t fraction;     /* of a node's extents: in millionths */
    uint32_t group;
    uint64_t seed, epoch;
    uint64_t (*cost)(const void *user, uint64_t extent); /* 1 at least */
    const void *user;
};

/* Changes owner[extent] in place. 4 bytes an extent are used. -ENOMEM, and nothing has changed. */
int exchange_run(const struct exchange *exchange, uint16_t *owner);

#endif
