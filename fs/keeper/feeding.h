/* The feeder of a mount, for its keeper: it is started when there are plans to be fed, and restarted when it dies.
 * Nothing else depends on it, and nothing waits for it. */
#ifndef FS_KEEPER_FEEDING_H
#define FS_KEEPER_FEEDING_H

#include "fs/attach/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FEEDING_DEATHS = 5 /* per minute of fs/keeper/backoff.h: after as many it is started only after a rest */ };

struct handover;
struct feeding {
    const struct mount_config *config;
    struct handover *handover;
    char program[PATH_MAX];        /* dealfs-feeder; "": not found */
    const char *oom;               /* the OOM score of children; "": unchanged */
    pid_t feeder;                  /* 0: none runs */
    uint64_t next;                 /* when one may be started */
    uint64_t started;              /* when the last one was started */
    unsigned rests;                /* number of rests since one has lived for a minute */
    uint64_t died[FEEDING_DEATHS]; /* times of the last deaths */
    unsigned deaths;
};

void feeding_init(struct feeding *feeding, const struct mount_config *config, struct handover *handover,
                  const char *oom);
void feeding_tick(struct feeding *feeding); /* call it while the mount is up */
/* True: `child`, which has ended with this status of waitpid, was the feeder. */
bool feeding_reaped(struct feeding *feeding, pid_t child, int status);
void feeding_stop(struct feeding *feeding);

#endif
