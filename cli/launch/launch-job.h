/* The job that `dealfs launch` sends to its agents. */
#ifndef CLI_LAUNCH_LAUNCH_JOB_H
#define CLI_LAUNCH_LAUNCH_JOB_H

#include "fs/base/str.h"

struct launch_job {
    unsigned rank, nodes;
    unsigned grace;        /* seconds that the command may take to end after SIGTERM */
    const char *host;      /* the node's name, as given */
    const char *directory; /* where the command runs */
    const char *options;   /* of the mount */
    const char *source, *mountpoint;
    char **command;     /* ends with NULL */
    char **environment; /* ends with NULL: the command's variables; empty: the agent's own */
};

void launch_job_write(const struct launch_job *job, struct str *out);
/* Its words point into `text`, which must stay valid. 0, -EINVAL or -ENOMEM; launch_job_fini frees the lists. */
int launch_job_read(struct launch_job *job, const struct str *text);
void launch_job_fini(struct launch_job *job);

#endif
