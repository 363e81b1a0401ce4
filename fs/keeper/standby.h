/* The standby waits for the death of its keeper, and becomes the next one, with the same descriptors and rights. So
 * keeper and server may be killed at the same moment. */
#ifndef FS_KEEPER_STANDBY_H
#define FS_KEEPER_STANDBY_H

#include "fs/wire/handover.h"

#include <stdbool.h>
#include <sys/types.h>

/* For the keeper: `name` is its own name in the process list, which the child changes for itself. Returns the
 * child, or -errno. */
pid_t standby_start(struct handover *handover, const char *state, char *name);
void standby_stop(pid_t standby);

/* For the server, when `keeper` has died. True: this server must start another keeper, and no other process does. Waits
 * briefly for the keeper's standby to take over. */
bool standby_claim(struct handover *handover, pid_t keeper);

#endif
