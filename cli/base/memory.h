/* How much memory is available: on the machine, or within the control groups of this process. */
#ifndef CLI_BASE_MEMORY_H
#define CLI_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory {
    uint64_t total;     /* of the machine, or the lowest limit of a control group */
    uint64_t available; /* likewise: what could be used now */
    bool by_group;      /* `available` is limited by a control group: */
    bool v2;
    char group[4096]; /* its path, as in /proc/PID/cgroup */
};

/* `root` precedes every path that is read: "" except in tests. 0 or -errno. */
int memory_look(const char *root, struct memory *memory);

/* Is a process in that group, or below it? Every process is on the machine. */
bool memory_has(const char *root, const struct memory *memory, int pid);

/* The default RAM budget: a quarter of the available memory, shared by the mounts of this host, and at most `need`. */
uint64_t memory_share(const struct memory *memory, unsigned mounts, uint64_t need);

#endif
