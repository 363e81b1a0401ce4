/* Finds keepers by their command line, `dealfs-keeper STATE`. Any user can give a process such a name, even one that
 * runs as root (a link of that name to a setuid program). So the caller must check whose process it is; and a process
 * that this user can examine only counts if it executes a program of that name that is not setuid. */
#include "cli/live/keepers.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

static const char feeder_name[] = "dealfs-feeder", feeder_paused[] = "dealfs-paused";

/* Other users can make processes whose files are too long: these are no keepers, and must not stop the search. */
static int look_error(int error)
{
    return error == -EFBIG || error == -ENAMETOOLONG ? 0 : process_look_error(error);
}

/* The answers of this function and the next three are 1, 0, or -errno if the process could not be examined. */
static int has_name(int process, const char *name)
{
    CLEANUP_STR struct str comm = STR_INIT;
    int error = file_read(process, "comm", 64, &comm);
    if (error)
        return look_error(error);
    return comm.length == strlen(name) + 1 && memcmp(comm.data, name, strlen(name)) == 0;
}

static int executes_it(int process, const char *name)
{
    char path[PATH_MAX];
    struct statx st;
    ssize_t n = readlinkat(process, "exe", path, sizeof path - 1);
    if (n < 0 && (errno == EACCES || errno == EPERM)) /* a root process seen by another user */
        return 1;
    if (n < 0)
        return look_error(-errno);
    path[n] = '\0';
    const char *base = strrchr(path, '/');
    if (!base || strncmp(base + 1, name, strlen(name)) != 0)
        return 0;
    /* the file may be on a FUSE mount that hangs: the kernel's cached attributes suffice */
    return statx(process, "exe", AT_STATX_DONT_SYNC, STATX_MODE, &st) != 0 || !(st.stx_mode & (S_ISUID | S_ISGID));
}

/* If its ids differ, another user has started a setuid program. */
static int find_uid(int process, uid_t *uid)
{
    CLEANUP_STR struct str status = STR_INIT;
    unsigned id[4];
    int error = file_read(process, "status", 1 << 16, &status);
    if (error || status.length == 0)
        return look_error(error);
    const char *line = strstr(status.data, "\nUid:");
    if (!line || sscanf(line, "\nUid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4)
        return 0;
    *uid = id[0];
    return id[0] == id[1] && id[0] == id[2] && id[0] == id[3];
}

/* A feeder's name shows that it is paused: see fs/feed/feeder.c. */
static int shows_name(int process, const char *name)
{
    int found = has_name(process, name);
    return found || strcmp(name, feeder_name) != 0 ? found : has_name(process, feeder_paused);
}

/* The process may end at any time, so it is skipped if it has ended. An error means that it may be one. */
static int look_at_process(int proc, const char *pid, const char *name,
                           int (*each)(void *user, const struct keeper_seen *keeper), void *user)
{
    CLEANUP_STR struct str line = STR_INIT;
    CLEANUP_CLOSE int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uid_t uid = 0;
    if (process < 0)
        return look_error(-errno);
    int is_one = shows_name(process, name);
    if (is_one > 0)
        is_one = find_uid(process, &uid);
    if (is_one > 0)
        is_one = executes_it(process, name);
    int error = is_one > 0 ? file_read(process, "cmdline", 1 << 16, &line) : is_one;
    if (error || line.length == 0)
        return look_error(error);
    const char *state = memchr(line.data, 0, line.length);
    if (!state || state + 1 >= line.data + line.length || state[1] != '/')
        return 0;
    struct keeper_seen seen = {.pid = (pid_t)atoi(pid), .uid = uid, .state = state + 1};
    return each(user, &seen);
}

static int each_process(const char *name, int (*each)(void *user, const struct keeper_seen *process), void *user)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    int result = 0;
    if (!d)
        return -errno;
    for (errno = 0; result == 0 && (e = readdir(d)); errno = 0)
        if (isdigit((unsigned char)e->d_name[0]))
            result = look_at_process(dirfd(d), e->d_name, name, each, user);
    return result ? result : -errno;
}

int keepers_each(int (*each)(void *user, const struct keeper_seen *keeper), void *user)
{
    return each_process("dealfs-keeper", each, user);
}

struct keeper_wanted {
    const char *state;
    uid_t uid; /* (uid_t)-1: any user's */
    pid_t pid;
};

static int match_state(void *user, const struct keeper_seen *keeper)
{
    struct keeper_wanted *w = user;
    if (strcmp(keeper->state, w->state) == 0 && (w->uid == (uid_t)-1 || w->uid == keeper->uid))
        w->pid = keeper->pid;
    return 0;
}

pid_t keepers_of_state(const char *state)
{
    struct keeper_wanted w = {.state = state, .uid = (uid_t)-1};
    keepers_each(match_state, &w);
    return w.pid;
}

pid_t keepers_server(const char *state, uid_t owner)
{
    struct keeper_wanted w = {.state = state, .uid = owner};
    each_process("dealfs-server", match_state, &w);
    return w.pid;
}

int keepers_each_mounter(int (*each)(void *user, const struct keeper_seen *mounter), void *user)
{
    return each_process("dealfs-mounter", each, user);
}

enum { PAUSE_TRIES = 200, PAUSE_MS = 5 };
static bool is_paused(pid_t feeder)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)feeder);
    CLEANUP_CLOSE int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return process < 0 || has_name(process, feeder_paused) != 0; /* one that cannot be examined is not killed */
}

/* Also returns when it has ended. */
static bool await_pause(pid_t feeder)
{
    for (int i = 0; i < PAUSE_TRIES && !is_paused(feeder); i++)
        clock_sleep(PAUSE_MS * MILLISECOND);
    return is_paused(feeder);
}

/* Checked again while it is watched: its number may belong to another process by now. */
static bool is_feeder(const struct process *p, uid_t owner)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)p->id);
    CLEANUP_CLOSE int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return process >= 0 && shows_name(process, feeder_name) > 0 && process_belongs_to(p, owner);
}

static bool pause_feeder(const struct process *feeder, uid_t owner)
{
    if (!is_feeder(feeder, owner) || process_signal(feeder, SIGUSR1))
        return false;
    if (await_pause(feeder->id))
        return true;
    process_kill(feeder);    /* it is stopped, or waits for a server that hangs */
    await_pause(feeder->id); /* its files are open until it ends */
    return false;
}

bool keepers_pause_feeder(const char *state, uid_t owner, struct process *feeder)
{
    struct keeper_wanted w = {.state = state, .uid = owner};
    each_process(feeder_name, match_state, &w);
    if (!w.pid || process_watch(w.pid, feeder))
        return false;
    bool paused = pause_feeder(feeder, owner);
    if (!paused)
        process_forget(feeder);
    return paused;
}

void keepers_resume_feeder(struct process *feeder)
{
    if (is_paused(feeder->id))
        process_signal(feeder, SIGUSR2);
    process_forget(feeder);
}

bool keepers_here(pid_t keeper)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)keeper);
    return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino == its.st_ino;
}

struct keeper_count {
    const struct memory *memory;
    unsigned mounts;
};

/* Keepers of other users cannot be trusted. The memory of their mounts is not available in any case. */
static int count_keeper(void *user, const struct keeper_seen *keeper)
{
    struct keeper_count *c = user;
    c->mounts += keeper->uid == geteuid() && memory_has("", c->memory, keeper->pid);
    return 0;
}

unsigned keepers_count(const struct memory *memory)
{
    struct keeper_count c = {.memory = memory};
    keepers_each(count_keeper, &c);
    return c.mounts;
}
