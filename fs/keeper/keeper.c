/* dealfs-keeper STATE: holds a mount's descriptors and shared memory, starts its server, and restarts it when it dies.
 * STATE is only for people and commands: the keeper's configuration is FD_CONFIG.
 *
 * One thread, which calls nothing that can block on the mount: short-lived children do that. It links neither RocksDB
 * nor libfuse, so that all that can go wrong is on these pages. It is started by the command, or by the server when the
 * previous keeper died; then that server is not its child, but is watched in the same way. */
#include "fs/attach/config.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/keeper/backoff.h"
#include "fs/keeper/feeding.h"
#include "fs/keeper/oom.h"
#include "fs/keeper/putup.h"
#include "fs/keeper/service.h"
#include "fs/keeper/servers.h"
#include "fs/keeper/standby.h"
#include "fs/keeper/stranded.h"
#include "fs/keeper/takedown.h"
#include "fs/keeper/watchdog.h"
#include "fs/wire/handover.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    TICK_MS = 100,     /* how often the leader's state is checked */
    CALM_MS = 250,     /* the same while a server runs and nothing is under way */
    COMING_MS = 5,     /* the same until the mount is up */
    MOST_FAILURES = 5, /* consecutive servers that died before the mount was up */
    YOUNG_PART = 3,    /* a server that has lived for this part of the patience was viable */
    DYING_S = 5,       /* how long a killed server may take to die; then the next one starts */
    CLOSING_S = 60,    /* how long a server may store data after the mount ended */
    LOOK_S = 2,        /* how often it is checked whether a mount with waiting reads still exists */
    ABANDONED_S = 10,  /* how long reads in an unmounted mount may wait */
    PUTUP_S = 60,      /* how long a child may take to attach the mounts */
};

/* waits for a server that answers; a child attaches the mounts */
enum coming { COMING_WAITS, COMING_PUT_UP /* by a child */, COMING_DONE };

struct keeper {
    char *name; /* argv[0] */
    pid_t standby;
    struct mount_config config;
    struct handover *handover;
    char oom[OOM_TEXT]; /* OOM score of its children */
    struct servers servers;
    struct feeding feeding;
    struct stranded stranded;
    struct service service;
    bool renewing; /* the server was killed so that the next one has tiers and peers again */
    enum coming coming;
    pid_t putting_up;
    uint64_t put_up_at;    /* when that child was started */
    uint64_t ended_at;     /* 0: not seen yet */
    bool leaving;          /* FD_LIFE has hung up, or the server was told to leave */
    enum ending_how fault; /* why it was killed; ENDING_UNSEEN: it was not */
    struct watchdog watchdog;
    uint64_t killed_at;          /* 0: it was not killed */
    pid_t looker;                /* a child that checks whether the mount exists; 0: none */
    uint64_t looked_at, gone_at; /* when it last began; when the mount was first missing, 0: it exists */
};

static bool has_flag(const struct keeper *k, enum handover_flags flag)
{
    return atomic_load(&k->handover->flags) & flag;
}

/* Only the first line is sent. */
static bool tell_command(const char *line)
{
    bool told = handover_tell(line);
    handover_drop(FD_READY);
    return told;
}

static void keeper_fail(const char *what, int error)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", what, strerror(-error));
    log_error("%s", line);
    tell_command(line);
    exit(1);
}

/* --- unmounting --- */

static void kill_server(struct keeper *k)
{
    process_kill(&k->servers.server);
    k->killed_at = clock_now();
}

static void keeper_leave(struct keeper *k, const char *why)
{
    k->leaving = true;
    log_info("%s: unmounting", why);
    handover_drop(FD_DATA_MOUNT);
    handover_drop(FD_CONTROL_MOUNT);
    takedown_leave(&k->config);
}

/* --- mounting --- */

/* If the command has died, nobody knows of the mount, so it is removed. If this keeper dies, the next one continues a
 * mount that is up, so the command is told after that. */
static void put_up_ended(struct keeper *k, int status)
{
    k->coming = COMING_DONE;
    handover_drop(FD_DATA_MOUNT);
    handover_drop(FD_CONTROL_MOUNT);
    if (status == 0)
        atomic_fetch_or(&k->handover->flags, HANDOVER_UP);
    if (status != 0)
        keeper_leave(k, "a mount could not be made");
    else if (handover_has(FD_READY) && !tell_command("ready"))
        keeper_leave(k, "the command that mounted has ended");
    handover_drop(FD_READY);
}

static void come_up(struct keeper *k)
{
    if (k->coming == COMING_WAITS && has_flag(k, HANDOVER_READY) && !k->leaving) {
        k->coming = COMING_PUT_UP;
        k->put_up_at = clock_now();
        k->putting_up = putup_start(&k->config);
        log_debug("keeper", "a server answers: child %d puts the mounts in their places", (int)k->putting_up);
    } else if (k->coming == COMING_PUT_UP && clock_now() - k->put_up_at > PUTUP_S * SECOND) {
        kill(k->putting_up, SIGKILL);
    }
    if (k->coming == COMING_PUT_UP && k->putting_up < 0)
        put_up_ended(k, -1);
}

/* --- while mounted --- */

/* A new standby gets the current descriptors. If there is no room for a process now, try again later. */
static void have_standby(struct keeper *k)
{
    if (k->servers.program.changed) {
        standby_stop(k->standby);
        k->standby = 0;
    }
    k->servers.program.changed = false;
    if (k->standby <= 0)
        k->standby = standby_start(k->handover, k->config.state, k->name);
}

static void reap_children(struct keeper *k)
{
    int status;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
        log_debug("keeper", "child %d has ended, wait says 0x%x", (int)child, (unsigned)status);
        if (child == k->servers.server.id)
            k->servers.status = status;
        if (child == k->standby)
            k->standby = 0;
        feeding_reaped(&k->feeding, child, status);
        if (k->coming == COMING_PUT_UP && child == k->putting_up)
            put_up_ended(k, status);
        if (child != k->looker)
            continue;
        bool gone = WIFEXITED(status) && WEXITSTATUS(status) == 1;
        k->looker = 0;
        k->gone_at = !gone ? 0 : k->gone_at ? k->gone_at : k->looked_at;
    }
    have_standby(k);
}

/* Processes inside an unmounted mount stay inside as long as reads are answered: end that. */
static void end_abandoned(struct keeper *k, uint64_t now)
{
    uint64_t oldest = atomic_load(&k->handover->pulse.oldest);
    if (!oldest || now - oldest < ABANDONED_S * SECOND || has_flag(k, HANDOVER_ABANDONED))
        return;
    if (k->gone_at && now - k->gone_at > ABANDONED_S * SECOND) {
        log_warning("a read has waited for %d s since the mount was unmounted: waiting reads fail now", ABANDONED_S);
        atomic_fetch_or(&k->handover->flags, HANDOVER_ABANDONED);
    } else if (k->looker <= 0 && now - k->looked_at > LOOK_S * SECOND) {
        k->looked_at = now;
        k->looker = takedown_look(&k->config);
    }
}

static void keeper_tick(struct keeper *k)
{
    reap_children(k);
    servers_lingering(&k->servers);
    come_up(k);
    uint64_t now = clock_now();
    takedown_again(&k->config);
    end_abandoned(k, now);
    if (k->leaving || has_flag(k, HANDOVER_ENDED))
        feeding_stop(&k->feeding);
    else if (k->coming == COMING_DONE)
        feeding_tick(&k->feeding);
    if (!has_flag(k, HANDOVER_ENDED))
        return;
    if (k->ended_at == 0) {
        k->ended_at = now;
    } else if (k->servers.server.id && now - k->ended_at > CLOSING_S * SECOND) {
        log_error("server %d has not ended although its mount has: it is killed", (int)k->servers.server.id);
        kill_server(k);
        k->ended_at = now;
    }
}

/* While a command waits for the mount to come up, only that command gives up. */
static void look_after(struct keeper *k)
{
    unsigned ms = watchdog_time(&k->watchdog, CALM_MS);
    bool up = k->coming == COMING_DONE;
    if ((!up && !k->leaving) || has_flag(k, HANDOVER_ENDED) || k->killed_at)
        return;
    uint64_t progress = service_progress(&k->service);
    k->fault = watchdog_look(&k->watchdog, &k->servers.server, progress, ms);
    if (!k->fault && program_look(&k->servers.program, k->handover, progress > 0, k->watchdog.silent))
        k->fault = ENDING_HUNG;
    if (k->fault)
        kill_server(k);
}

static int choose_tick(const struct keeper *k, int server)
{
    if (k->coming != COMING_DONE)
        return COMING_MS;
    return server < 0 || k->leaving || k->killed_at || has_flag(k, HANDOVER_ENDED) ? TICK_MS : CALM_MS;
}

/* One iteration of the loops below. `server`: its pidfd; -1: none runs, or it cannot be watched. False: the data mount
 * has just ended. */
static bool keeper_turn(struct keeper *k, int server)
{
    bool waits = k->coming == COMING_WAITS && !k->leaving && handover_has(FD_READY);
    struct pollfd fd[] = {
        {.fd = server, .events = POLLIN},
        {.fd = k->leaving || !handover_has(FD_LIFE) ? -1 : FD_LIFE},
        {.fd = waits ? FD_READY : -1},
        {.fd = server < 0 && !has_flag(k, HANDOVER_ENDED) ? FD_DATA : -1},
    };
    int ready = ready_wait(fd, 4, choose_tick(k, server));
    if (ready > 0 && fd[1].revents)
        keeper_leave(k, "the process that the mount was made for has ended");
    else if (ready > 0 && fd[2].revents)
        keeper_leave(k, "the command that mounted has ended");
    if (!k->leaving && has_flag(k, HANDOVER_LEAVE))
        keeper_leave(k, "another node of the world requested it");
    if (takedown_asked()) /* also again: the first attempt may have failed */
        keeper_leave(k, "its user requested it");
    return ready <= 0 || !fd[3].revents;
}

/* Replace a server that has run without tiers or peers for a while, unless whatever a server hung in still hangs; also
 * if an upgrade was requested. */
static void renew_server(struct keeper *k)
{
    if (k->renewing || k->killed_at || k->coming != COMING_DONE || has_flag(k, HANDOVER_ENDED))
        return;
    bool over = backoff_is_over(k->handover) && handover_lingering(k->handover) == 0;
    if (!program_begin(&k->servers.program, k->handover) && !over)
        return;
    log_info("server %d %s", (int)k->servers.server.id,
             over ? "has run for a minute: the next one uses all tiers and peers again"
                  : "is replaced by one of the installed program");
    k->renewing = true;
    kill_server(k);
}

/* If it was killed and does not die, its main thread hangs in the kernel: it counts as dead. */
static bool server_is_dead(const struct keeper *k)
{
    return process_is_dead(&k->servers.server) || (k->killed_at && clock_now() - k->killed_at > DYING_S * SECOND);
}

/* Returns when the server is dead. */
static void watch_server(struct keeper *k)
{
    k->killed_at = 0;
    service_begin(&k->service);
    while (!server_is_dead(k)) {
        keeper_turn(k, k->servers.server.pidfd);
        service_look(&k->service);
        look_after(k);
        renew_server(k);
        keeper_tick(k);
    }
    /* the leader may die before the other threads; the status is available when all are dead */
    ready_wait(&(struct pollfd){.fd = k->servers.server.pidfd, .events = POLLIN}, 1, TICK_MS);
    reap_children(k);
    service_look(&k->service);
    if (service_progress(&k->service) > 0)
        stranded_forget(&k->stranded);
}

/* No server runs: wait until one may be started. False: the mount has ended meanwhile. */
static bool await_start(struct keeper *k, uint64_t pause)
{
    uint64_t end = clock_now() + pause;
    while (clock_now() < end || servers_lingering(&k->servers) == LINGERING_MOST) {
        if (!keeper_turn(k, -1)) {
            atomic_fetch_or(&k->handover->flags, HANDOVER_ENDED);
            return false;
        }
        keeper_tick(k);
        stranded_look(&k->stranded, k->service.lived_at);
        if (handover_lingering(k->handover) == LINGERING_MOST)
            log_limited(LOG_LEVEL_ERROR, 60,
                        "%d killed servers cannot end (a disk or the source hangs): no other server is started",
                        LINGERING_MOST);
    }
    return true;
}

/* --- the end --- */

static void keeper_end(struct keeper *k, enum takedown how, const char *why)
{
    feeding_stop(&k->feeding);
    tell_command(why);
    takedown_await(takedown_start(&k->config, how));
    takedown_files(&k->config);
}

static int keeper_finish(struct keeper *k)
{
    log_info("the mount has ended");
    if (handover_has(FD_SSD))
        futimens(FD_SSD, NULL); /* for `dealfs clean --older`: time of the last use */
    keeper_end(k, TAKEDOWN_ENDED, "the mount was unmounted before it was ready");
    return 0;
}

/* A server has died. Returns the pause before the next one; -1: there will be none, see `why`. */
static int64_t server_died(struct keeper *k, const char **why)
{
    if (k->renewing) {
        k->renewing = false;
        atomic_store(&k->handover->level, LEVEL_WHOLE);
        servers_note_kill(&k->servers, true);
        return 0;
    }
    bool enough = servers_note_death(&k->servers, k->fault, k->service.young) >= MOST_FAILURES;
    if (program_died(&k->servers.program))
        return 0;
    *why = servers_refused(&k->servers) ? "the server cannot run"
           : enough                     ? "five servers in a row died before they answered a request"
                                        : NULL;
    if (*why && !has_flag(k, HANDOVER_READY)) /* a mount that was up is only ended by its owner */
        return -1;
    return (int64_t)backoff_died(k->handover);
}

/* While it is unknown whether the previous keeper's server lives, no other one may start, but requests to leave are
 * heard. After the mount's end the server has as much time as any other to end. */
static bool adopt_server(struct keeper *k)
{
    int adopted;
    while ((adopted = servers_adopt(&k->servers)) < 0) {
        if (k->ended_at && clock_now() - k->ended_at > CLOSING_S * SECOND)
            return false;
        if (!keeper_turn(k, -1))
            atomic_fetch_or(&k->handover->flags, HANDOVER_ENDED);
        keeper_tick(k);
    }
    return adopted == 1;
}

static int keeper_run(struct keeper *k)
{
    bool running = adopt_server(k);
    int64_t pause = 0;
    const char *why;
    if (!running && has_flag(k, HANDOVER_ENDED))
        return keeper_finish(k);
    for (;; running = false) {
        if (!running && !await_start(k, (uint64_t)pause))
            return keeper_finish(k);
        int error = running ? 0 : servers_start(&k->servers);
        if (error) {
            log_limited(LOG_LEVEL_ERROR, 1, "start a server: %s", strerror(-error));
            pause = TICK_MS * MILLISECOND;
            continue;
        }
        have_standby(k);
        k->fault = ENDING_UNSEEN;
        watchdog_reset(&k->watchdog);
        watch_server(k);
        if (has_flag(k, HANDOVER_ENDED))
            return keeper_finish(k);
        pause = server_died(k, &why);
        if (pause < 0) {
            log_error("%s: the mount is given up and unmounted", why);
            keeper_end(k, TAKEDOWN_ABORT, why);
            return 1;
        }
        servers_bury(&k->servers);
    }
}

static void keeper_prepare(struct keeper *k)
{
    process_ignore_signals();
    signal(SIGCHLD, SIG_DFL);
    takedown_listen();
    /* processes are found by this name; a standby was executed with another one */
    prctl(PR_SET_NAME, "dealfs-keeper");
    handover_close_others();
    int error = handover_reserve();
    int log = handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO;
    log_open("dealfs-keeper", log, false);
    if (error)
        keeper_fail("reserve descriptors", error);
    error = config_read_sealed(FD_CONFIG, &k->config);
    if (error)
        keeper_fail("read the mount's configuration", error);
    if (geteuid() != k->config.owner_uid) /* no process of a mount has more rights than its owner */
        keeper_fail("serve another user's mount", -EPERM);
    log_open("dealfs-keeper", log, k->config.syslog);
    error = handover_open(true, &k->handover);
    if (error)
        keeper_fail("make the servers' shared memory", error);
    if (has_flag(k, HANDOVER_UP)) /* set by an earlier keeper */
        k->coming = COMING_DONE;
    else if (!handover_has(FD_READY)) /* the command has lost the keeper that it waits for */
        keeper_leave(k, "the keeper has died before the mount was up");
    uint64_t patience = clock_bound("DEALFS_PATIENCE", SERVER_PATIENCE_S);
    k->watchdog.patience = (unsigned)(patience / MILLISECOND);
    service_init(&k->service, k->handover, patience / YOUNG_PART);
    error = servers_init(&k->servers, &k->config, k->handover, k->oom, patience / YOUNG_PART);
    if (error)
        keeper_fail("find dealfs-server beside dealfs-keeper", error);
    if (chdir("/"))
        keeper_fail("change to /", -errno);
    oom_protect(k->oom);
    stranded_init(&k->stranded, k->handover, patience);
    atomic_store(&k->handover->keeper, (uint32_t)getpid());
    feeding_init(&k->feeding, &k->config, k->handover, k->oom);
}

int main(int argc, char **argv)
{
    static struct keeper k;
    if (argc != 2) {
        fprintf(stderr, "usage: dealfs-keeper STATE (it is started by `dealfs mount`)\n");
        return 2;
    }
    keeper_prepare(&k);
    k.name = argv[0];
    k.standby = standby_start(k.handover, k.config.state, k.name);
    if (k.standby < 0)
        log_warning("start a standby: %s", strerror(-k.standby));
    int status = keeper_run(&k);
    standby_stop(k.standby);
    config_fini(&k.config);
    handover_close(k.handover);
    return status;
}
