/* How a dealfs-mounter protects the keeper of its mount from the OOM killer (oom.h).
 *
 * Children inherit the protection, and a process that executes another program keeps it. So only the announced keeper
 * gets it, and only while it executes our dealfs-keeper; a keeper that follows takes it over. */
#ifndef FS_KEEPER_SHIELD_H
#define FS_KEEPER_SHIELD_H

#include "fs/base/process.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { SHIELD_TEXT = 16 };

struct shield {
    int program;             /* our dealfs-keeper, O_PATH: its inode is not reused; -1: unknown */
    int process;             /* the protected process, as its folder of /proc; -1: none */
    const char *given;       /* the oom_score_adj that protects */
    char score[SHIELD_TEXT]; /* that of the first keeper before */
};

void shield_self(void);
void shield_init(struct shield *shield);
/* 0; -EPERM: it does not execute our keeper; -ESRCH: it has died, or is not a process of `uid`. The process that was
 * protected before loses the protection. */
int shield_give(struct shield *shield, const struct process *keeper, uid_t uid);
/* Takes the protection back if the process executes another program by now. */
void shield_check(struct shield *shield);

#endif
