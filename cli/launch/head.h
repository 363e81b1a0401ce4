/* The first process of `dealfs launch`: it starts the agents, and leads them through the phases of the job. */
#ifndef CLI_LAUNCH_HEAD_H
#define CLI_LAUNCH_HEAD_H

#include "cli/launch/launch-nodes.h"

struct launch_wish {
    const char *options; /* of the mounts, as one list */
    const char *source, *mountpoint;
    char **command;
    bool stage, once;
    unsigned grace; /* seconds that a command may take to end after SIGTERM */
};

/* Returns the exit status: the command's. */
int head_run(struct launch_nodes *nodes, const struct launch_wish *wish);

#endif
