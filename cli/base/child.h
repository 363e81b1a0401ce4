/* Child processes that commands start. */
#ifndef CLI_BASE_CHILD_H
#define CLI_BASE_CHILD_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* fork(2), with a pipe from the child: `*end` is the end to be read, in the child the end to be written; both are
 * closed on exec. Returns the child, and 0 in the child; or -errno, and `*end` is -1. */
pid_t child_fork(int *end);
/* Waits for a child until `deadline`, then kills it, and waits some seconds more: it may hang in the kernel. 0: none */
void child_end(pid_t child, uint64_t deadline);
/* The path of this program; "": unknown. */
void child_self(char path[PATH_MAX]);

#endif
