/* The nodes of `dealfs launch`: finds them, and starts their agents. */
#ifndef CLI_LAUNCH_LAUNCH_NODES_H
#define CLI_LAUNCH_LAUNCH_NODES_H

#include "cli/launch/agent.h"
#include "cli/launch/channel.h"

#include <stdbool.h>

struct launch_node {
    char *host;
    struct channel channel;
    pid_t starter;    /* ssh, srun, or the agent's parent; 0: none */
    int errors;       /* its standard error; -1 */
    struct str words; /* the current line of that */
    bool mounted, gone;
    unsigned joined; /* number of nodes in its world */
    int status;      /* of the command; -1: it has not ended */
};

enum launch_way { WAY_ALONE, WAY_HOSTS, WAY_SLURM };

struct launch_nodes {
    enum launch_way way;
    struct launch_node *node;
    unsigned count;
    struct agent_process alone;
};

/* `hosts`: a list with commas; `hostfile`: one host per line, as for mpirun; both NULL: Slurm's nodes, or only this
 * machine. 0 or -errno with `why`. */
int launch_nodes_find(struct launch_nodes *n, const char *hosts, const char *hostfile, struct str *why);
/* Start the agent of one node. 0 or -errno with `why`. */
int launch_nodes_start(struct launch_nodes *n, unsigned i, struct str *why);
/* At the end: waits for started processes, for a limited time. */
void launch_nodes_fini(struct launch_nodes *n);

/* $DEALFS_RSH, or ssh with options; to be split at spaces. */
const char *launch_rsh(void);
/* Splits `text` at spaces, into at most `most` words from `words[n]` on; returns the new n. Changes `text`. */
size_t launch_split(char *text, char *words[], size_t n, size_t most);

#endif
