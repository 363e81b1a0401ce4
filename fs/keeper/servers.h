/* The server of a mount, for its keeper: starts it, or adopts the previous keeper's, and tracks killed servers that
 * cannot die yet because one of their threads hangs in the kernel. */
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
    const char *oom;       /* the OOM score of children; "": unchanged */
    struct process server; /* the running server */
    int status;            /* of wait; -1: unknown */
    struct process lingering[LINGERING_MOST];
    unsigned lingerers;
};

int servers_init(struct servers *servers, const struct mount_config *config, struct handover *handover, const char *oom,
                 uint64_t trial); /* of programs, in nanoseconds */
/* Adopt the previous keeper's server if it is alive. A server that is just being forked does not count. 1: adopted. 0:
 * none lives. -errno: unknown; no server may be started, because two would read the same requests: call it again. */
int servers_adopt(struct servers *servers);
int servers_start(struct servers *servers);
/* Whom the next server blames: see HANDOVER_KILLED. */
void servers_note_kill(const struct servers *servers, bool killed);
/* The server is dead: record how it ended, unless `fault` says it. A server that died within `young` nanoseconds
 * without an answer was not viable. Returns the number of consecutive ones. */
unsigned servers_note_death(const struct servers *servers, enum ending_how fault, uint64_t young);
bool servers_refused(const struct servers *servers);
/* The server is dead, or was killed and does not die. */
void servers_bury(struct servers *servers);
/* Number of killed servers that have not ended; at LINGERING_MOST, no other one may be started. */
unsigned servers_lingering(struct servers *servers);

#endif
