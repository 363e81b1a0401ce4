/* Requests a turn and waits until all nodes of the world have taken it. Any thread. */
#ifndef FS_WORLD_TURN_WAIT_H
#define FS_WORLD_TURN_WAIT_H

#include "fs/world/membership.h"

/* How long to wait, and for whom. */
struct turn_patience {
    uint64_t deadline; /* in the clock of clock_now */
    bool (*gave_up)(void *user);
    void *user;
};

/* After a server restart the courier reconnects within seconds. */
bool courier_may_come(const struct self *self);

/* 0 and `record`; record.k = 0: this node is alone. Otherwise `trouble` has the reason in words, and the result is:
 *
 *   -ENOTCONN   some nodes cannot be asked: there is no turn before the next join
 *   -ETIMEDOUT  the deadline has passed; the turn may still be taken
 *   -EINTR      the asker gave up
 *   -EINVAL     there is no such turn
 *   other       the last failure; it was repeated, with growing pauses, until the deadline */
int turn_wait(struct self *self, struct membership *membership, const struct turn *turn,
              const struct turn_patience *patience, struct turn_record *record, struct str *trouble);

#endif
