/* Listens for couriers. It talks to one courier; others are rejected with EBUSY meanwhile. */
#ifndef FS_WORLD_LISTENER_H
#define FS_WORLD_LISTENER_H

#include "fs/world/talk.h"

struct courier_listener;

int listener_create(struct self *self, struct membership *membership, struct courier_listener **listener);
int listener_start(struct courier_listener *listener); /* from now on couriers are answered */
void listener_stop(struct courier_listener *listener); /* ends a living world */
void listener_destroy(struct courier_listener *listener);

#endif
