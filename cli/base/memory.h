/* How much memory there is to have: what the machine has available, or what the control groups of this process
 * leave. */
#ifndef CLI_BASE_MEMORY_H
#define CLI_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory {
    uint64_t total;     /* of the machine, or the lowest limit of a control group */
    uint64_t available; /* likewise: what could be used now */
    bool by_group;      /* `available` is what a control group leaves: */
    bool v2;
    char group[4096]; /* its path, as /proc/PID/cgroup has it */
};

/* `root` stands before every path that is read: "" outside tests. 0 or -errno. */
int memory_look(const char *root, struct memory *memory);

/* Is a process in that group, or below it? Any is on the machine. */
bool memory_has(const char *root, const struct memory *memory, int pid);

/* The default RAM budget: a quarter of what is available, shared by the mounts of this host, and never more than is
 * needed. */
uint64_t memory_share(const struct memory *memory, unsigned mounts, uint64_t need);

#endif
