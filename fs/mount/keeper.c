/* dealfs-keeper STATE: holds a mount's descriptors and shared memory, starts its server, and starts the next one when
 * that dies.
 *
 * One thread, nothing that can block on the mount: short-lived children do what could. It links neither RocksDB nor
 * libfuse, so that what can go wrong here is on these pages. It is started by the command, or by the server when the
 * keeper before died; then that server is not its child, and is watched all the same. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/mount/config.h"
#include "fs/mount/handover.h"
#include "fs/mount/process.h"
#include "fs/mount/takedown.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
    TICK_MS = 100,     /* how often the leader's state is looked at */
    MOST_FAILURES = 5, /* servers in a row that died before they answered a request */
    YOUNG_S = 10,      /* an idle server that lived longer is no failure */
    CLOSING_S = 60,    /* for a server to store what it holds after the mount ended */
    CHILD_S = 20,      /* for a child that takes mounts away */
    KEEPER_OOM = -500,
};
#define SECOND UINT64_C(1000000000)

struct keeper {
    struct mount_config config;
    struct handover *handover;
    char program[PATH_MAX]; /* dealfs-server */
    char oom[16];           /* the score that the server is to have again */
    struct process server;
    uint64_t ended_at; /* 0: not seen yet */
    bool leaving;      /* FD_LIFE has hung up, or the server was told to leave */
    int status;        /* of wait; -1: not known */
};

static bool has_flag(const struct keeper *k, enum handover_flags flag)
{
    return atomic_load(&k->handover->flags) & flag;
}

/* To whoever waits for the mount to come up, if still somebody does. */
static void tell_command(const char *line)
{
    if (!handover_has(FD_READY))
        return;
    file_write_all(FD_READY, line, strlen(line));
    file_write_all(FD_READY, "\n", 1);
    handover_drop(FD_READY);
}

static void fail(const char *what, int error)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", what, strerror(-error));
    log_error("%s", line);
    tell_command(line);
    exit(1);
}

/* --- children --- */

/* A child that holds nothing of the mount, so that it cannot keep alive what it takes away. */
static pid_t fork_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        static const int ours[] = {FD_DATA, FD_CONTROL, FD_SHARED, FD_LOCK, FD_READY, FD_LIFE, FD_RAM, FD_SOURCE};
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            close(ours[i]);
        prctl(PR_SET_NAME, "dealfs-takedown");
    } else if (child < 0) {
        log_error("fork: %s", strerror(errno));
    }
    return child;
}

static void await_child(pid_t child)
{
    struct process p;
    if (child <= 0 || process_watch(child, &p))
        return;
    struct pollfd done = {.fd = p.pidfd, .events = POLLIN};
    if (poll(&done, 1, CHILD_S * 1000) == 0) {
        log_warning("a child that takes mounts away hangs: left behind");
        kill(child, SIGKILL);
    }
    waitpid(child, NULL, WNOHANG);
    process_forget(&p);
}

static void learn(struct keeper *k)
{
    if (atomic_load(&k->handover->minors_known))
        return;
    pid_t child = fork_child();
    if (child == 0) {
        takedown_learn(&k->config, k->handover);
        _exit(0);
    }
    await_child(child);
}

static pid_t start_unmount(struct keeper *k, bool abort_first)
{
    pid_t child = fork_child();
    if (child == 0) {
        if (abort_first)
            takedown_abort(k->handover);
        takedown_unmount(&k->config, k->handover);
        _exit(0);
    }
    return child;
}

static void remove_files(struct keeper *k)
{
    pid_t child = fork_child();
    if (child == 0) {
        takedown_files(&k->config);
        _exit(0);
    }
    await_child(child);
}

/* --- the server --- */

static int set_oom(const char *text)
{
    CLEANUP_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* The server must be able to do what the mount's owner may, and no more. */
static int become_owner(const struct mount_config *config)
{
    if (geteuid() != 0 || (config->owner_uid == 0 && config->owner_gid == getegid()))
        return 0;
    struct passwd *owner = getpwuid(config->owner_uid);
    int error = owner ? initgroups(owner->pw_name, config->owner_gid) : setgroups(1, &config->owner_gid);
    if (error || setgid(config->owner_gid) || setuid(config->owner_uid))
        return -errno;
    return 0;
}

static void execute_server(struct keeper *k)
{
    char line[PATH_MAX + 64];
    if (k->oom[0])
        set_oom(k->oom);
    int error = become_owner(&k->config);
    if (!error) {
        handover_close_others();
        execl(k->program, "dealfs-server", k->config.state, (char *)NULL);
        error = -errno;
    }
    snprintf(line, sizeof line, "start %s: %s", k->program, strerror(-error));
    log_error("%s", line);
    tell_command(line);
    _exit(SERVER_REFUSED);
}

static int start_server(struct keeper *k)
{
    struct handover *h = k->handover;
    atomic_fetch_add(&h->generation, 1);
    atomic_store(&h->started, clock_now());
    atomic_store(&h->answered, handover_answered(h));
    k->status = -1;
    pid_t child = fork();
    if (child == 0)
        execute_server(k);
    if (child < 0)
        return -errno;
    atomic_store(&h->server, (uint32_t)child);
    int error = process_watch(child, &k->server);
    if (error) {
        kill(child, SIGKILL);
        waitpid(child, &k->status, 0);
    }
    return error;
}

/* The server that made this keeper, if it is alive. */
static bool adopt_server(struct keeper *k)
{
    if (process_watch((pid_t)atomic_load(&k->handover->server), &k->server))
        return false;
    if (process_is_dead(&k->server)) {
        process_forget(&k->server);
        return false;
    }
    k->status = -1;
    log_info("the keeper before died: this one watches server %d", (int)k->server.id);
    return true;
}

/* Children of before: servers that lingered, takers-away of mounts. */
static void reap(struct keeper *k)
{
    int status;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
        if (child == k->server.id)
            k->status = status;
}

static void tick(struct keeper *k)
{
    reap(k);
    if (has_flag(k, HANDOVER_READY) && handover_has(FD_READY))
        handover_drop(FD_READY);
    if (!has_flag(k, HANDOVER_ENDED))
        return;
    uint64_t now = clock_now();
    if (k->ended_at == 0) {
        k->ended_at = now;
    } else if (now - k->ended_at > CLOSING_S * SECOND) {
        log_error("server %d does not end though its mount has: killed", (int)k->server.id);
        kill(k->server.id, SIGKILL);
        k->ended_at = now;
    }
}

static void leave(struct keeper *k, const char *why)
{
    k->leaving = true;
    log_info("%s: unmounting", why);
    start_unmount(k, false);
}

/* Returns when the server is dead. */
static void watch(struct keeper *k)
{
    while (!process_is_dead(&k->server)) {
        struct pollfd fd[] = {
            {.fd = k->server.pidfd, .events = POLLIN},
            {.fd = k->leaving || !handover_has(FD_LIFE) ? -1 : FD_LIFE},
        };
        if (poll(fd, 2, TICK_MS) > 0 && fd[1].revents)
            leave(k, "whom the mount was made for is gone");
        if (!k->leaving && has_flag(k, HANDOVER_LEAVE))
            leave(k, "another node of the world has ended it");
        tick(k);
    }
    reap(k);
}

static void describe_death(const struct keeper *k, char *text, size_t n)
{
    if (k->status == -1)
        snprintf(text, n, "is dead");
    else if (WIFSIGNALED(k->status))
        snprintf(text, n, "was killed by signal %d (%s)", WTERMSIG(k->status), strsignal(WTERMSIG(k->status)));
    else
        snprintf(text, n, "exited with status %d", WEXITSTATUS(k->status));
}

/* True: enough of them. */
static bool count_failure(struct keeper *k, const char *death)
{
    struct handover *h = k->handover;
    uint64_t answered = handover_answered(h) - atomic_load(&h->answered);
    uint64_t lived = clock_now() - atomic_load(&h->started);
    bool failure = answered == 0 && lived < YOUNG_S * SECOND;
    unsigned failures = failure ? atomic_fetch_add(&h->failures, 1) + 1 : 0;
    if (!failure)
        atomic_store(&h->failures, 0);
    log_error("server %d %s after %" PRIu64 " ms and %" PRIu64 " requests", (int)k->server.id, death,
              lived / (SECOND / 1000), answered);
    return failures >= MOST_FAILURES;
}

/* --- the end --- */

static int give_up(struct keeper *k, const char *why)
{
    log_error("%s: giving up, the mount is taken away", why);
    tell_command(why);
    await_child(start_unmount(k, true));
    remove_files(k);
    return 1;
}

static int finish(struct keeper *k)
{
    log_info("the mount has ended");
    tell_command("the mount was taken away before it was ready");
    await_child(start_unmount(k, false));
    remove_files(k);
    return 0;
}

static int keep(struct keeper *k)
{
    bool running = adopt_server(k);
    for (;;) {
        int error = running ? 0 : start_server(k);
        if (error) {
            log_limited(LOG_LEVEL_ERROR, 1, "start a server: %s", strerror(-error));
            nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
            continue;
        }
        running = false;
        watch(k);
        char death[128];
        describe_death(k, death, sizeof death);
        if (has_flag(k, HANDOVER_ENDED))
            return finish(k);
        bool refused = has_flag(k, HANDOVER_REFUSED) ||
                       (k->status != -1 && WIFEXITED(k->status) && WEXITSTATUS(k->status) == SERVER_REFUSED);
        if (refused)
            return give_up(k, "the server cannot run");
        if (count_failure(k, death))
            return give_up(k, "five servers in a row died before they answered one request");
        process_forget(&k->server);
    }
}

static void protect_from_oom(struct keeper *k)
{
    CLEANUP_STR struct str now = STR_INIT;
    char text[16];
    if (geteuid() != 0 || file_read(AT_FDCWD, "/proc/self/oom_score_adj", sizeof k->oom - 1, &now))
        return;
    snprintf(text, sizeof text, "%d", KEEPER_OOM);
    if (atoi(now.data) > KEEPER_OOM && set_oom(text) == 0)
        snprintf(k->oom, sizeof k->oom, "%s", now.data);
}

static void prepare(struct keeper *k, const char *state)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    handover_close_others();
    int error = handover_reserve();
    int log = handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO;
    log_open("dealfs-keeper", log, false);
    if (error)
        fail("reserve descriptors", error);
    error = config_read(state, &k->config);
    if (error)
        fail("read the mount's configuration", error);
    log_open("dealfs-keeper", log, k->config.syslog);
    error = handover_find_program("dealfs-server", k->program, sizeof k->program);
    if (error)
        fail("find dealfs-server beside dealfs-keeper", error);
    error = handover_open(true, &k->handover);
    if (error)
        fail("make the memory that the servers share", error);
    if (chdir("/"))
        fail("change to /", -errno);
    protect_from_oom(k);
    atomic_store(&k->handover->keeper, (uint32_t)getpid());
    learn(k);
}

int main(int argc, char **argv)
{
    static struct keeper k = {.server = {0, -1, -1}};
    if (argc != 2) {
        fprintf(stderr, "usage: dealfs-keeper STATE (it is started by `dealfs mount`)\n");
        return 2;
    }
    prepare(&k, argv[1]);
    int status = keep(&k);
    config_fini(&k.config);
    handover_close(k.handover);
    return status;
}
