/* The keepers that run on this host, as /proc shows them. */
#ifndef CLI_KEEPERS_H
#define CLI_KEEPERS_H

#include <sys/types.h>

struct keeper_seen {
    pid_t pid;
    uid_t uid;         /* as whom it runs: root's may keep another user's mount */
    const char *state; /* its state directory */
};

/* Every process named dealfs-keeper, whoever's; non-zero ends it and is returned. */
int keepers_each(int (*each)(void *user, const struct keeper_seen *keeper), void *user);
/* The one of a state directory, or 0. */
pid_t keepers_of_state(const char *state);
unsigned keepers_count(void);

#endif
