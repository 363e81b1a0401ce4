/* The keepers that run on this host, from /proc. */
#ifndef CLI_LIVE_KEEPERS_H
#define CLI_LIVE_KEEPERS_H

#include "cli/base/memory.h"
#include "fs/base/process.h"

#include <stdbool.h>
#include <sys/types.h>

struct keeper_seen {
    pid_t pid;
    uid_t uid;         /* its user, who owns the mount */
    const char *state; /* its state directory */
};

/* Calls `each` for every process of any user that seems to be a keeper; a nonzero result ends the loop and is
 * returned. -errno also if a process could not be examined, for example without memory: it may be one. */
int keepers_each(int (*each)(void *user, const struct keeper_seen *keeper), void *user);
/* The keeper of a state directory, or 0. */
pid_t keepers_of_state(const char *state);
/* The server of that mount, running as the mount's owner, or 0. */
pid_t keepers_server(const char *state, uid_t owner);
/* Make the mount's feeder, running as the mount's owner, close all files of the mount, for some seconds or until it is
 * resumed: otherwise it would keep the mount busy. False: there is none; one that does not react is killed, and
 * restarted by its keeper. Resuming forgets it. */
bool keepers_pause_feeder(const char *state, uid_t owner, struct process *feeder);
void keepers_resume_feeder(struct process *feeder);
/* Root's processes that mounted for other users; `state` is the mountpoint. */
int keepers_each_mounter(int (*each)(void *user, const struct keeper_seen *mounter), void *user);
bool keepers_here(pid_t keeper);                     /* is it in our mount namespace? */
unsigned keepers_count(const struct memory *memory); /* this user's keepers that share this memory */

#endif
