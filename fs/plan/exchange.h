/* Exchange: a part of each node's extents moves to other nodes, and as many arrive. This is the rule of
 * partial-local shuffling (Nguyen et al.) and, with all extents, of a shuffle within a group (Kumar et al., DIMD,
 * Algorithm 2), for extents of different cost. fs/world/FORMAT specifies it.
 *
 * Owners change only among extents of nearly equal cost, so each node owns as many as before, and nearly as many
 * bytes. */
#ifndef FS_PLAN_EXCHANGE_H
#define FS_PLAN_EXCHANGE_H

#include <stdint.h>

enum { EXCHANGE_ALL = 1000000 };

struct exchange {
    uint64_t extents;
    uint32_t first, nodes; /* of the group; extents of other owners stay unchanged */
    uint32_t fraction;     /* of a node's extents, in millionths */
    uint32_t group;
    uint64_t seed, epoch;
    uint64_t (*cost)(const void *user, uint64_t extent); /* at least 1 */
    const void *user;
};

/* Changes owner[extent] in place. Uses 4 bytes per extent. -ENOMEM: nothing has changed. */
int exchange_run(const struct exchange *exchange, uint16_t *owner);

#endif
