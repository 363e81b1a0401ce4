/* A process that does nothing but wait for the death of its keeper, and becomes the next one, with the same descriptors
 * and the same rights. So keeper and server can be killed in the same moment. */
#ifndef FS_KEEPER_STANDBY_H
#define FS_KEEPER_STANDBY_H

#include "fs/wire/handover.h"

#include <stdbool.h>
#include <sys/types.h>

/* For the keeper: `name` is its own in the process list, which the child alters for itself. Returns the child, or
 * -errno. */
pid_t standby_start(struct handover *handover, const char *state, char *name);
void standby_stop(pid_t standby);

/* For the server, when `keeper` has died: true: it is to start another, and nobody else does. Waits a moment for the
 * standby of the keeper to have taken its place. */
bool standby_claim(struct handover *handover, pid_t keeper);

#endif
