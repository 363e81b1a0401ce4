/* The arguments of dealfs-courier. `dealfs mount` and `dealfs join` execute it under a launcher, so they are few
 * and simple. */
#ifndef MPI_ARGUMENTS_H
#define MPI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct arguments {
    const char *state, *mountpoint;
    uint64_t nodes, groups;   /* 0: any */
    uint64_t timeout;         /* nanoseconds; 0: the server's value */
    uint64_t resize, quality; /* options of the mount; 0: not set */
    int64_t lock;             /* descriptor of the state directory, locked; -1: none */
    int64_t mounter;          /* descriptor of a socket to dealfs-mounter; -1: none */
    uint64_t uid, gid;        /* the user that root becomes permanently; 0: stay root */
    bool mount, scan;         /* whether `command` mounts, or scans; neither: there is no command */
    bool acls;                /* the mount needs a catalog that respects ACLs */
    char **command;
};

/* 0; or -EINVAL, after it has printed what is wrong. */
int arguments_parse(int argc, char **argv, struct arguments *arguments);

#endif
