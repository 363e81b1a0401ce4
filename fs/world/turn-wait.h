/* Asking for a turn, and waiting until all nodes of the world have taken it. Any thread. */
#ifndef FS_WORLD_TURN_WAIT_H
#define FS_WORLD_TURN_WAIT_H

#include "fs/world/membership.h"

/* For how long, and for whom. */
struct turn_patience {
    uint64_t deadline; /* as clock_now */
    bool (*gave_up)(void *user);
    void *user;
};

/* Couriers return to a server that was restarted, some moments later. */
bool courier_may_come(const struct self *self);

/* 0 and `record`, of k = 0 where this node is alone. Else what `trouble` has in words:
 *   -ENOTCONN   not all nodes can be asked, so that none turns before the next join
 *   -ETIMEDOUT  the deadline has passed; the turn may still be taken
 *   -EINTR      the asker gave up
 *   -EINVAL     there is no such turn
 *   other       why it failed last; it was tried again, less and less often, until the deadline */
int turn_wait(struct self *self, struct membership *membership, const struct turn *turn,
              const struct turn_patience *patience, struct turn_record *record, struct str *trouble);

#endif
