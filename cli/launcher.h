/* Who started this process beside others like it, as the environment tells: mpirun, srun, or nobody. */
#ifndef CLI_LAUNCHER_H
#define CLI_LAUNCHER_H

#include "fs/base/str.h"

#include <stdbool.h>

struct launcher {
    const char *name;  /* "mpirun", "srun", …; NULL: nobody */
    bool deaf;         /* it started several that cannot find each other: no MPI that we speak */
    unsigned rank;     /* our number among them */
    unsigned size;     /* how many; 0: the environment does not tell */
    unsigned local;    /* how many of them on this host, as far as it tells; at least 1 */
};

void launcher_find(struct launcher *launcher);
/* Why a deaf one cannot make a world, and what to do. */
void launcher_say_deaf(const struct launcher *launcher, const char *command, struct str *why);
/* What is started from here on is nobody's rank any more, and may use every processor that the control group has:
 * mpirun pins a process to a core, and children inherit that. */
void launcher_leave(void);

#endif
