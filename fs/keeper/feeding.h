/* The feeder of a mount, for its keeper: started when there are plans to be fed, again when it dies. Nothing else of
 * a mount depends on it, and nobody ever waits for it. */
#ifndef FS_KEEPER_FEEDING_H
#define FS_KEEPER_FEEDING_H

#include "fs/attach/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FEEDING_DEATHS = 5 /* within the minute of fs/keeper/backoff.h: it is started again only after a rest */ };

struct handover;
struct feeding {
    const struct mount_config *config;
    struct handover *handover;
    char program[PATH_MAX];        /* dealfs-feeder; "": not to be found */
    const char *oom;               /* the score that a child is to have again, "": its own */
    pid_t feeder;                  /* 0: none runs */
    uint64_t next;                 /* when one may be started */
    uint64_t started;              /* when the last one was */
    unsigned rests;                /* since one has lived for a minute */
    uint64_t died[FEEDING_DEATHS]; /* when the last ones did */
    unsigned deaths;
};

void feeding_init(struct feeding *feeding, const struct mount_config *config, struct handover *handover,
                  const char *oom);
void feeding_tick(struct feeding *feeding); /* while the mount is up */
/* True: it was the feeder that ended, with what waitpid says. */
bool feeding_reaped(struct feeding *feeding, pid_t child, int status);
void feeding_stop(struct feeding *feeding);

#endif
