/* The process that joins the nodes' mounts: mpirun or srun of `dealfs join`. A world that ends is started again. */
#ifndef CLI_LAUNCH_LAUNCH_WORLD_H
#define CLI_LAUNCH_LAUNCH_WORLD_H

#include "cli/launch/launch-nodes.h"

struct launch_world {
    pid_t pid;             /* 0: does not run */
    int output;            /* what it prints; -1 */
    uint64_t began, again; /* when it was started, and may be started again */
    unsigned pause;        /* seconds before the next start */
    bool ending;
};

void launch_world_init(struct launch_world *w);
/* Are the programs there that it needs? 0 or -ENOENT with `why`. */
int launch_world_check(const struct launch_nodes *n, struct str *why);
int launch_world_start(struct launch_world *w, const struct launch_nodes *n, const char *mountpoint, struct str *why);
/* True: it has ended since the last call. */
bool launch_world_ended(struct launch_world *w);
void launch_world_end(struct launch_world *w);  /* asks it to */
void launch_world_fini(struct launch_world *w); /* waits for that, but not for long */

#endif
