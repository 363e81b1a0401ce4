/* Which launcher started this process together with others, by the environment: mpirun, srun, or none. */
#ifndef CLI_BASE_LAUNCHER_H
#define CLI_BASE_LAUNCHER_H

#include "fs/base/str.h"

#include <stdbool.h>

struct launcher {
    const char *name; /* "mpirun", "srun", …; NULL: none */
    bool deaf;        /* it started several processes that cannot find each other: without an MPI that we support */
    unsigned rank;    /* our number among them */
    unsigned size;    /* their number; 0: unknown */
    unsigned local;   /* their number on this host, if known; at least 1 */
    int slot;         /* our number among those; -1: the only one */
};

void launcher_find(struct launcher *launcher);
/* Why a deaf launcher cannot form a world, and what to do. */
void launcher_say_deaf(const struct launcher *launcher, const char *command, struct str *why);

#endif
