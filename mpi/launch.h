/* The helper that executes `dealfs mount` for the courier. It is forked before MPI_Init, so that nothing of MPI and of
 * the launcher is in the processes of the mount: no descriptors, no threads' memory, no binding to one processor, no
 * session that is ended with the job. */
#ifndef MPI_LAUNCH_H
#define MPI_LAUNCH_H

#include "fs/base/str.h"

#include <sys/types.h>

struct helper {
    pid_t pid;
    int socket; /* -1: there is no helper */
    char **command;
};

int helper_start(struct helper *helper, char **command); /* 0 or -errno */
/* It waits for one of these; `name` goes before each line that the command says. 0; else -errno, and `why` has its last
 * words. The descriptor of the catalog that the mount is to have (-1: it scans) stays the caller's. */
int helper_mount(struct helper *helper, const char *name, int catalog, struct str *why);
int helper_scan(struct helper *helper, const char *name, const char *path, struct str *why);
void helper_end(struct helper *helper);

#endif
