/* The process that joins the nodes' mounts: mpirun or srun with `dealfs join`. If the world ends, it is started
 * again. */
#ifndef CLI_LAUNCH_LAUNCH_WORLD_H
#define CLI_LAUNCH_LAUNCH_WORLD_H

#include "cli/launch/launch-nodes.h"

struct launch_world {
    pid_t pid;             /* 0: not running */
    int output;            /* its output; -1 */
    uint64_t began, again; /* when it was started; when it may be started again */
    uint64_t heard;        /* when it last printed something */
    unsigned pause;        /* seconds before the next start */
    bool ending;
};

void launch_world_init(struct launch_world *w);
/* Do the required programs exist? 0 or -ENOENT with `why`. */
int launch_world_check(const struct launch_nodes *n, struct str *why);
int launch_world_start(struct launch_world *w, const struct launch_nodes *n, const char *mountpoint, struct str *why);
/* Nothing was heard from it for some minutes: while nodes join, node 0 prints a line at least once per minute. */
bool launch_world_is_silent(const struct launch_world *w);
/* True: it has ended since the last call. */
bool launch_world_ended(struct launch_world *w);
void launch_world_end(struct launch_world *w);  /* asks it to end */
void launch_world_fini(struct launch_world *w); /* waits for its end, for a limited time */

#endif
