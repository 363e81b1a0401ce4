/* Implements shield.h. */
#include "fs/keeper/shield.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char protected_score[] = "-500";

static int write_score(int process, const char *score)
{
    CLEANUP_CLOSE int fd = openat(process, "oom_score_adj", O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -ESRCH : file_write_all(fd, score, strlen(score));
}

static int read_score(int process, char score[SHIELD_TEXT])
{
    CLEANUP_CLOSE int fd = openat(process, "oom_score_adj", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, score, SHIELD_TEXT - 1);
    if (n < 0)
        return -ESRCH;
    score[n] = '\0';
    return 0;
}

void shield_self(void)
{
    CLEANUP_CLOSE int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self >= 0)
        write_score(self, protected_score);
}

void shield_init(struct shield *s)
{
    char path[PATH_MAX];
    s->process = -1;
    s->given = protected_score;
    s->program = handover_find_program("dealfs-keeper", path, sizeof path) ? -1 : open(path, O_PATH | O_CLOEXEC);
}

/* Asks no server: the program of another user's process may be on a FUSE mount that hangs. */
static bool file_number(int dir, const char *path, int flags, struct statx *st)
{
    return statx(dir, path, flags | AT_STATX_DONT_SYNC, STATX_INO, st) == 0 && st->stx_mask & STATX_INO;
}

static bool runs_keeper(const struct shield *s, int process)
{
    struct statx ours, its;
    return s->program >= 0 && file_number(s->program, "", AT_EMPTY_PATH, &ours) &&
           file_number(process, "exe", 0, &its) && its.stx_ino == ours.stx_ino &&
           its.stx_dev_major == ours.stx_dev_major && its.stx_dev_minor == ours.stx_dev_minor;
}

static void shield_drop(struct shield *s)
{
    if (s->process < 0)
        return;
    write_score(s->process, s->score); /* this fails if it has died, even if another process has its number by now */
    close(s->process);
    s->process = -1;
}

static int open_process(const struct process *p, uid_t uid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)p->id);
    CLEANUP_CLOSE int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || !process_belongs_to(p, uid) || process_is_dead(p)) /* else the number could be another's */
        return -ESRCH;
    return steal_fd(folder);
}

int shield_give(struct shield *s, const struct process *keeper, uid_t uid)
{
    CLEANUP_CLOSE int process = open_process(keeper, uid);
    if (process < 0)
        return process;
    if (!runs_keeper(s, process))
        return -EPERM;
    shield_drop(s);
    /* only once: the children of a keeper have inherited the protection */
    int error = s->score[0] ? 0 : read_score(process, s->score);
    if (!error)
        error = write_score(process, s->given);
    if (error)
        return error;
    s->process = steal_fd(process);
    shield_check(s); /* it may have executed another program meanwhile */
    return s->process < 0 ? -EPERM : 0;
}

void shield_check(struct shield *s)
{
    if (s->process >= 0 && !runs_keeper(s, s->process))
        shield_drop(s);
}
