/* Who started this process beside others like it, as the environment tells: mpirun, srun, or nobody. */
#ifndef CLI_BASE_LAUNCHER_H
#define CLI_BASE_LAUNCHER_H

#include "fs/base/str.h"

#include <stdbool.h>

struct launcher {
    const char *name; /* "mpirun", "srun", …; NULL: nobody */
    bool deaf;        /* it started several that cannot find each other: no MPI that we speak */
    unsigned rank;    /* our number among them */
    unsigned size;    /* how many; 0: the environment does not tell */
    unsigned local;   /* how many of them on this host, as far as it tells; at least 1 */
    int slot;         /* which of those; -1: the only one */
};

void launcher_find(struct launcher *launcher);
/* Why a deaf one cannot make a world, and what to do. */
void launcher_say_deaf(const struct launcher *launcher, const char *command, struct str *why);

#endif
