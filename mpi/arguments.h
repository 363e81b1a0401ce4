/* The arguments of dealfs-courier. `dealfs mount` and `dealfs join` execute it under a launcher, so they are few and
 * plain. */
#ifndef MPI_ARGUMENTS_H
#define MPI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct arguments {
    const char *state, *mountpoint;
    uint64_t nodes, groups;   /* 0: any */
    uint64_t timeout;         /* nanoseconds; 0: as the server says */
    uint64_t resize, quality; /* what the command mounts with; 0: without */
    int lock;                 /* of the state directory, held; -1: none */
    int mounter;              /* a socket of dealfs-mounter; -1: none */
    uint64_t uid, gid;        /* whom root becomes for good; 0: it stays root */
    bool mount, scan;         /* what `command` does; neither: there is none */
    char **command;
};

/* 0; else it has said what is wrong: -EINVAL. */
int arguments_parse(int argc, char **argv, struct arguments *arguments);

#endif
