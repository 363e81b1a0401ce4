/* Which program the next server runs.
 *
 *   installed   the current file dealfs-server next to the keeper
 *   previous    FD_PROGRAM: the program of the last server that lived long enough; kept open, so it outlives its file
 *
 * A server of an installed file that differs from the previous program is on trial; FD_TRIAL is its program. If it
 * serves for `trial` nanoseconds, its program becomes the previous one. If it dies before, also together with its
 * keeper, does not serve in that time, or hangs at its end, the next server runs the previous program again, until
 * another file is installed or an upgrade is requested.
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
    char path[PATH_MAX]; /* of the installed file */
    uint64_t trial;
    struct program_file failed; /* the installed file whose server died on trial */
    bool changed;               /* the two descriptors have changed: the standby must be restarted to get them */
};

int program_init(struct program *program, struct handover *handover, uint64_t trial);
/* Call it before a server starts. */
void program_choose(struct program *program, struct handover *handover);
/* Call it in the child that becomes the server; returns only on failure. */
void program_execute(const char *state);
/* True: an upgrade was requested and the installed program is another one, so the server must be replaced. A trial of
 * another program than the installed one ends, without a result. */
bool program_begin(struct program *program, struct handover *handover);
/* Call it while a server runs. True: kill it, because it does not serve (`serves`) at the end of its trial. One that
 * has not moved for `silent` milliseconds stays on trial: it moves again, or the watchdog has it killed. */
bool program_look(struct program *program, struct handover *handover, bool serves, unsigned silent);
/* Call it when the server is dead. True: it was on trial, and the next one runs the previous program. */
bool program_died(struct program *program);

#endif
