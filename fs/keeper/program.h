/* Which program the next server is.
 *
 *   installed   the file dealfs-server beside the keeper, whatever it is by now
 *   previous    FD_PROGRAM: the program of the last server that lived long enough; kept open, so it outlives its file
 *
 * A server of an installed file that is not the previous one is on trial, and FD_TRIAL is its program. If it serves
 * for `trial` nanoseconds, its program is the previous one from then on. If it dies before, or does not serve in that
 * time, the next server is the previous program again, until another file is installed or an upgrade is requested.
 *
 * Root executes an installed file only if root, or the owner of the previous one, is the only user who can write it. */
#ifndef FS_KEEPER_PROGRAM_H
#define FS_KEEPER_PROGRAM_H

#include "fs/wire/handover.h"

#include <limits.h>
#include <sys/types.h>

struct program_file {
    dev_t device;
    ino_t inode; /* 0: no file */
};

struct program {
    char path[PATH_MAX]; /* the installed file */
    uint64_t trial;
    struct program_file failed; /* the installed file whose server died in its trial */
    bool changed;               /* the two descriptors: a standby must be started again, to have them */
};

int program_init(struct program *program, struct handover *handover, uint64_t trial);
/* Before a server starts. */
void program_choose(struct program *program, struct handover *handover);
/* In the child that becomes the server; returns only on failure. */
void program_execute(const char *state);
/* An upgrade was requested, and there is another program: the server is to be replaced. */
bool program_begin(struct program *program, struct handover *handover);
/* To be called while a server runs. True: it is to be killed, because it does not serve at the end of its trial. */
bool program_look(struct program *program, struct handover *handover);
/* The server is dead. True: it was on trial, and the next one is the previous program. */
bool program_died(struct program *program);

#endif
