/* The process of `dealfs launch` on each node. It mounts, runs the command, and removes everything when its channel to
 * `launch` ends for any reason. */
#ifndef CLI_LAUNCH_AGENT_H
#define CLI_LAUNCH_AGENT_H

#include "cli/launch/remains.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent_process {
    pid_t pid;
    struct remains *remains;
};

/* `direct`: the command gets this process's standard files; else its output is sent through the channel. The agent is a
 * child; it gets the two descriptors of its channel. 0 or -errno. */
int agent_start(struct agent_process *agent, int in, int out, bool direct);
/* Waits until the agent has ended, and kills it at `deadline`: it may be stopped. */
void agent_end(const struct agent_process *agent, uint64_t deadline);
/* Waits until the agent has ended. If it was killed, removes what it has left. */
void agent_finish(struct agent_process *agent);
/* `dealfs launch --agent`: the channel is standard input and output. */
int agent_main(void);

#endif
