/* Who listens for couriers. One courier is talked to at a time; others are refused with EBUSY. */
#ifndef FS_WORLD_LISTENER_H
#define FS_WORLD_LISTENER_H

#include "fs/world/talk.h"

struct courier_listener;

int listener_create(struct self *self, struct membership *membership, struct courier_listener **listener);
int listener_start(struct courier_listener *listener); /* couriers are answered from now on */
void listener_stop(struct courier_listener *listener); /* a living world ends */
void listener_destroy(struct courier_listener *listener);

#endif
