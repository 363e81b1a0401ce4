/* The server of a mount, for its keeper: starts it, or adopts the one of the keeper before, and knows which killed ones
 * cannot die yet because a thread of theirs hangs in the kernel. */
#ifndef FS_KEEPER_SERVERS_H
#define FS_KEEPER_SERVERS_H

#include "fs/attach/config.h"
#include "fs/base/process.h"
#include "fs/keeper/program.h"
#include "fs/wire/endings.h"
#include "fs/wire/handover.h"

struct servers {
    const struct mount_config *config;
    struct handover *handover;
    struct program program;
    const char *oom;       /* the score that a child is to have again; "": its own */
    struct process server; /* the one that runs */
    int status;            /* of wait; -1: not known */
    struct process lingering[LINGERING_MOST];
    unsigned lingerers;
};

int servers_init(struct servers *servers, const struct mount_config *config, struct handover *handover, const char *oom,
                 uint64_t trial); /* of programs, in nanoseconds */
bool servers_adopt(struct servers *servers);
int servers_start(struct servers *servers);
/* The server is dead: notes how it ended, where `fault` does not say it. One that died within `young` nanoseconds and
 * answered nothing could not live. Returns how many in a row could not. */
unsigned servers_note_death(const struct servers *servers, enum ending_how fault, uint64_t young);
bool servers_refused(const struct servers *servers);
/* The server is dead, or was killed and does not die. */
void servers_bury(struct servers *servers);
/* How many of those have not ended yet, at most LINGERING_MOST: then no other one may be started. */
unsigned servers_lingering(struct servers *servers);

#endif
