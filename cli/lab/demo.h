/* The parts of `dealfs demo`: its output (demo.c), and its mounts, on one or several nodes (demo-nodes.c). */
#ifndef CLI_LAB_DEMO_H
#define CLI_LAB_DEMO_H

#include "fs/base/str.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum { DEMO_NODES = 4 };

struct demo {
    char directory[PATH_MAX - 64]; /* contains everything that we create */
    struct str pasted;             /* the same for the shell, quoted; "/…" may follow */
    char source[PATH_MAX];
    uint64_t bytes; /* of the source */
    int nodes;      /* number of mounts; 1 if there can be no world */
    char mountpoint[DEMO_NODES][PATH_MAX], control[DEMO_NODES][PATH_MAX];
    int root[DEMO_NODES]; /* descriptors of the mounts' roots; -1 */
    pid_t mpirun;         /* 0: none */
    int output;           /* its output; -1 */
};

/* Runs `dealfs` with these arguments; returns its exit status, or -errno. `whole`: to its end, even after Ctrl-C. */
int demo_dealfs(char *const argv[], bool whole);

/* Each returns an exit status; a failure was printed. */
int demo_mount(struct demo *demo); /* on several nodes; else on one, with a line that says why */
int demo_unmount(struct demo *demo);

#endif
