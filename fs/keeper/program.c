#include "fs/keeper/program.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct program_file file_of(const struct stat *st)
{
    return (struct program_file){st->st_dev, st->st_ino};
}

static bool is_same(struct program_file a, struct program_file b)
{
    return a.device == b.device && a.inode == b.inode && a.inode;
}

static void set_trial(struct program *p, int fd)
{
    if (fd >= 0)
        dup2(fd, FD_TRIAL);
    else if (handover_has(FD_TRIAL))
        handover_drop(FD_TRIAL);
    else
        return;
    p->changed = true;
}

/* Where the previous program was, for a keeper that starts while no program is installed. */
static int find_previous(struct program *p)
{
    static const char deleted[] = " (deleted)";
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", FD_PROGRAM);
    ssize_t n = handover_has(FD_PROGRAM) ? readlink(link, p->path, sizeof p->path - 1) : -1;
    if (n < 0)
        return -ENOENT;
    p->path[n] = '\0';
    size_t suffix = sizeof deleted - 1;
    if ((size_t)n > suffix && strcmp(p->path + n - suffix, deleted) == 0)
        p->path[(size_t)n - suffix] = '\0';
    return 0;
}

static bool may_execute(const struct stat *installed, const struct stat *previous)
{
    mode_t others = installed->st_gid == 0 ? S_IWOTH : S_IWGRP | S_IWOTH;
    if (!S_ISREG(installed->st_mode))
        return false;
    if (geteuid() != 0)
        return true;
    return (installed->st_uid == 0 || installed->st_uid == previous->st_uid) && !(installed->st_mode & others);
}

/* `fd`: the installed file, or -1. */
static enum program_state judge_installed(const struct program *p, int fd)
{
    struct stat installed, previous;
    if (fd < 0 || fstat(fd, &installed) || fstat(FD_PROGRAM, &previous) || !may_execute(&installed, &previous)) {
        log_error("%s is missing, or other users may write it: the next server is the previous program", p->path);
        return PROGRAM_REFUSED;
    }
    return is_same(file_of(&installed), file_of(&previous)) ? PROGRAM_INSTALLED
           : is_same(file_of(&installed), p->failed)        ? PROGRAM_PREVIOUS
                                                            : PROGRAM_TRIAL;
}

/* A standby that was started before a trial began or ended has other descriptors than the keeper that it follows. */
static void correct_trial(struct program *p, uint32_t state, int installed)
{
    if (state == PROGRAM_TRIAL) {
        if (!handover_has(FD_TRIAL) && judge_installed(p, installed) == PROGRAM_TRIAL)
            set_trial(p, installed);
        return;
    }
    if (state == PROGRAM_INSTALLED && handover_has(FD_TRIAL))
        dup2(FD_TRIAL, FD_PROGRAM);
    set_trial(p, -1);
}

/* The shared memory tells a new keeper what the previous one knew about the installed file. */
int program_init(struct program *p, struct handover *h, uint64_t trial)
{
    struct stat st;
    uint32_t state = atomic_load(&h->program);
    *p = (struct program){.trial = trial};
    int error = handover_find_program("dealfs-server", p->path, sizeof p->path);
    if (error)
        error = find_previous(p);
    CLEANUP_CLOSE int fd = error ? -1 : open(p->path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && state == PROGRAM_PREVIOUS && fstat(fd, &st) == 0)
        p->failed = file_of(&st);
    if (fd >= 0 && !handover_has(FD_PROGRAM)) /* the first keeper: there is no previous program */
        dup2(fd, FD_PROGRAM);
    correct_trial(p, state, fd);
    return error;
}

void program_choose(struct program *p, struct handover *h)
{
    CLEANUP_CLOSE int fd = open(p->path, O_PATH | O_CLOEXEC);
    enum program_state state = judge_installed(p, fd);
    set_trial(p, state == PROGRAM_TRIAL ? fd : -1);
    atomic_store(&h->program, state);
}

/* By descriptor: the file that was checked, even if its name leads to another one by now. */
void program_execute(const char *state)
{
    char *argv[] = {"dealfs-server", (char *)state, NULL};
    execveat(handover_has(FD_TRIAL) ? FD_TRIAL : FD_PROGRAM, "", argv, environ, AT_EMPTY_PATH);
}

/* Is the installed file the program of the running server, which is on trial? */
static bool is_on_trial(const struct program *p)
{
    struct stat installed, trial;
    return handover_has(FD_TRIAL) && stat(p->path, &installed) == 0 && fstat(FD_TRIAL, &trial) == 0 &&
           is_same(file_of(&installed), file_of(&trial));
}

bool program_begin(struct program *p, struct handover *h)
{
    if (atomic_load(&h->program) != PROGRAM_ASKED)
        return false;
    if (is_on_trial(p)) {
        atomic_store(&h->program, PROGRAM_TRIAL);
        return false;
    }
    bool other = handover_has(FD_TRIAL);
    p->failed = (struct program_file){0, 0};
    program_choose(p, h);
    return other || atomic_load(&h->program) == PROGRAM_TRIAL;
}

/* An upgrade that was requested meanwhile stays requested. */
bool program_look(struct program *p, struct handover *h, bool serves, unsigned silent)
{
    enum { MOVES_MS = 1000 };
    uint32_t state = PROGRAM_TRIAL;
    if (!handover_has(FD_TRIAL) || clock_now() - atomic_load(&h->started) < p->trial)
        return false;
    if (!serves)
        return true;
    if (silent >= MOVES_MS)
        return false;
    log_info("the installed program has served for %u s: it stays", (unsigned)(p->trial / SECOND));
    dup2(FD_TRIAL, FD_PROGRAM);
    set_trial(p, -1);
    atomic_compare_exchange_strong(&h->program, &state, PROGRAM_INSTALLED);
    return false;
}

bool program_died(struct program *p)
{
    struct stat st;
    if (!handover_has(FD_TRIAL))
        return false;
    if (fstat(FD_TRIAL, &st) == 0)
        p->failed = file_of(&st);
    set_trial(p, -1);
    log_error("the server of the installed program %s died or hung within %u s: the previous program is started again",
              p->path, (unsigned)(p->trial / SECOND));
    return true;
}
