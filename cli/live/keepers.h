/* The keepers that run on this host, as /proc shows them. */
#ifndef CLI_LIVE_KEEPERS_H
#define CLI_LIVE_KEEPERS_H

#include "cli/base/memory.h"
#include "fs/base/process.h"

#include <stdbool.h>
#include <sys/types.h>

struct keeper_seen {
    pid_t pid;
    uid_t uid;         /* as whom it runs, which is whose mount it is */
    const char *state; /* its state directory */
};

/* Every process that seems to be one, of any user; non-zero ends it and is returned. */
int keepers_each(int (*each)(void *user, const struct keeper_seen *keeper), void *user);
/* The one of a state directory, or 0. */
pid_t keepers_of_state(const char *state);
/* The server that runs for it, as the mount's owner, or 0. */
pid_t keepers_server(const char *state, uid_t owner);
/* Have the feeder that runs for it, as the mount's owner, have nothing of the mount open, for some seconds or until it
 * is told to go on: a feeder that goes on opening files would keep the mount busy. False: there is none; one that does
 * not answer is killed, and started again by its keeper. Resuming forgets it. */
bool keepers_pause_feeder(const char *state, uid_t owner, struct process *feeder);
void keepers_resume_feeder(struct process *feeder);
/* Root's processes that mounted for other users; `state` is the mountpoint. */
int keepers_each_mounter(int (*each)(void *user, const struct keeper_seen *mounter), void *user);
bool keepers_here(pid_t keeper);                     /* in our mount namespace */
unsigned keepers_count(const struct memory *memory); /* this user's, that share this memory with us */

#endif
