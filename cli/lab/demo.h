/* The parts of `dealfs demo`: what it shows (demo.c), its mounts, on one node or on several (demo-nodes.c). */
#ifndef CLI_LAB_DEMO_H
#define CLI_LAB_DEMO_H

#include "fs/base/str.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum { DEMO_NODES = 4 };

struct demo {
    char directory[PATH_MAX - 64]; /* everything of ours is in it */
    char source[PATH_MAX];
    uint64_t bytes; /* of the source */
    int nodes;      /* that are mounted, or were to be: 1 where there can be no world */
    char mountpoint[DEMO_NODES][PATH_MAX], control[DEMO_NODES][PATH_MAX];
    int root[DEMO_NODES]; /* the mounts'; -1 */
    pid_t mpirun;         /* 0: none */
    int output;           /* what it says; -1 */
};

/* Runs `dealfs` with these arguments; its exit status, or -errno. `whole`: also when Ctrl-C comes. */
int demo_dealfs(char *const argv[], bool whole);

/* An exit status each; a failure has been said. */
int demo_mount(struct demo *demo); /* of several nodes, else of one with a line that says why */
int demo_unmount(struct demo *demo);

#endif
