/* The arguments of dealfs-courier, which `dealfs mount` and `dealfs join` execute under a launcher. */
#ifndef MPI_OPTIONS_H
#define MPI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *state, *mountpoint;
    uint32_t nodes, groups; /* 0: any */
    uint64_t timeout;       /* nanoseconds; 0: as the server says */
    bool mount, scan;       /* what `command` does; neither: there is none */
    char **command;
};

int options_parse(int argc, char **argv, struct options *options); /* 0; else it has said what is wrong: -EINVAL */

#endif
