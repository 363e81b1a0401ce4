/* dealfs-server STATE: answers the requests of a mount.
 *
 * Threads: the sessions' readers, which run the handlers; those of the store, the peers and RocksDB; and the main
 * thread. It starts everything, then waits for the end of the data mount and for the death of the keeper, which it
 * replaces. The main thread never accesses the mount: its death shows the keeper that the server is dead, so it must
 * always be able to die.
 *
 * A mount with wait_join starts without a catalog: its data session is behind a gate, and the peers' thread opens the
 * rest when a courier brings the catalog. */
#include "fs/server/server.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/base/thread.h"
#include "fs/base/version.h"
#include "fs/catalog/catalog.h"
#include "fs/server/faults.h"
#include "fs/keeper/standby.h"
#include "fs/wire/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CONTROL_THREADS = 2,
    LEAST_THREADS = 4,
    LEAST_WITH_SSD = 16, /* a read of an SSD waits in its thread; passing it to another thread costs two switches */
    MOST_THREADS = 64,
    ARENAS = 4,
    KEPT_BYTES = 2 << 20,
    CLOSE_SECONDS = 15,
    TICK_MS = 100,
    LOOK_MS = 1000, /* for what no descriptor reports */
    STAGING_DEATHS = 3,
};

/* While the command waits for the mount, one line tells it why there will be none. In a mount that was up before,
 * another server will try later. */
void server_refuse(struct server *s, const char *what, const char *on, int error)
{
    char line[PATH_MAX + 256];
    snprintf(line, sizeof line, "%s %s: %s", what, on, strerror(-error));
    log_error("%s", line);
    handover_tell(line);
    if (s->handover)
        atomic_fetch_or(&s->handover->flags, HANDOVER_REFUSED);
    _exit(SERVER_REFUSED);
}

/* --- start --- */

/* READs that the previous server had in progress are replayed, and counted again. */
static void forget_waits(struct feed_waits *waits)
{
    atomic_store(&waits->all, 0);
    for (int place = 0; place < FEED_PLACES; place++)
        atomic_store(&waits->waiting[place], 0);
}

/* The format of the memory decides whether this server may use it; the version is only shown. */
static void take_over(struct handover *h)
{
    if (h->release[0] && strncmp(h->release, version_text, sizeof h->release) != 0)
        log_info("dealfs %s takes over from dealfs %.*s", version_text, (int)sizeof h->release - 1, h->release);
    snprintf(h->release, sizeof h->release, "%s", version_text);
}

static void server_prepare(struct server *s)
{
    process_ignore_signals();
    prctl(PR_SET_NAME, "dealfs-server"); /* a program that was executed by descriptor has another name */
    mallopt(M_ARENA_MAX, ARENAS);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES); /* reuse buffers of reads instead of mapping and faulting them again */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    handover_reserve();
    int log = handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO;
    log_open("dealfs-server", log, false);
    int error = handover_open(false, &s->handover);
    if (error)
        server_refuse(s, "map",
                      error == -ESTALE ? "the servers' shared memory: another version of dealfs made this mount. "
                                         "Unmount, and mount again to use this version"
                                       : "the servers' shared memory",
                      error);
    atomic_store(&s->handover->server, (uint32_t)getpid());
    take_over(s->handover);
    forget_waits(&handover_feed(s->handover)->served.waits);
    error = config_read_sealed(FD_CONFIG, &s->config);
    if (error)
        server_refuse(s, "read", "the mount's configuration", error);
    log_open("dealfs-server", log, s->config.syslog);
    s->ended = eventfd(0, EFD_CLOEXEC);
    if (s->ended < 0)
        server_refuse(s, "make", "an eventfd", -errno);
}

static void open_control(struct server *s)
{
    struct control_config config = {
        .mount = &s->config,
        .catalog = s->catalog,
        .store = s->store,
        .peers = s->peers,
        .generation = atomic_load(&s->handover->generation),
        .keeper = (const uint32_t *)&s->handover->keeper,
        .staging = &s->handover->staging,
        .state = handover_has(FD_STATE) ? FD_STATE : 0,
        .handover = s->handover,
        .feed = handover_feed(s->handover),
        .derived = s->derived,
        .remade = &s->remade,
    };
    int error = control_create(&config, &s->control);
    if (error)
        server_refuse(s, "make", "the control tree", error);
}

/* Before any request for progress. */
static void go_on_staging(struct server *s)
{
    struct staging *staging = &s->handover->staging;
    uint64_t round = atomic_load(&staging->round);
    if (!round || !s->store)
        return;
    uint32_t deaths = 1 + atomic_fetch_add(&staging->deaths, 1);
    if (deaths > STAGING_DEATHS) {
        log_error("%u servers have died since staging began: staging is not resumed", deaths);
        atomic_store(&staging->round, 0);
        return;
    }
    control_command(s->control, WORLD_STAGE, round);
}

/* --- sessions --- */

static void data_ended(void *user, int error)
{
    struct server *s = user;
    uint64_t one = 1;
    atomic_store(&s->end_error, error);
    if (write(s->ended, &one, sizeof one) < 0)
        abort();
}

/* The data mount continues without it: `dealfs umount` also removes that. */
static void control_ended(void *user, int error)
{
    (void)user;
    log_info("the control mount has ended%s%s", error ? ": " : "", error ? strerror(-error) : "");
}

int server_data_threads(const struct server *s)
{
    int threads = 2 * (int)processors_count(), least = s->config.ssd_bytes ? LEAST_WITH_SSD : LEAST_THREADS;
    return threads < least ? least : threads > MOST_THREADS ? MOST_THREADS : threads;
}

static void start_session(struct server *s, struct session_config *config, struct session **session)
{
    config->foreign_pids = s->config.foreign_pids;
    int error = session_create(config, session);
    if (!error)
        error = session_start(*session);
    if (error)
        server_refuse(s, "start the session of", config->name, error);
}

/* The most that the kernel grants to an ordinary user's mount; root's could have more, but need not. */
static unsigned background_limit(void)
{
    CLEANUP_STR struct str text = STR_INIT;
    unsigned long limit = 0;
    if (file_read(AT_FDCWD, "/sys/module/fuse/parameters/max_user_bgreq", 64, &text) == 0 && text.data)
        limit = strtoul(text.data, NULL, 10);
    return limit && limit < DATA_BACKGROUND ? (unsigned)limit : DATA_BACKGROUND;
}

/* The handler of the data session: the data mount, or the gate in front of it. */
static void choose_data(struct server *s, struct session_config *data)
{
    const char *control = s->config.nested ? NULL : s->config.control;
    data->ops = faults_apply(&s->config, atomic_load(&s->handover->generation));
    s->data = (struct data_mount){.catalog = s->catalog,
                                  .store = s->store,
                                  .reads = s->reads,
                                  .readahead = (uint32_t)s->config.readahead,
                                  .control = control};
    data->user = &s->data;
    if (!server_waits_for_catalog(s))
        return;
    struct gate_config gate = {
        .uid = s->config.owner_uid,
        .gid = s->config.owner_gid,
        .mount = &s->data,
        .below = data->ops,
    };
    int error = gate_create(&gate, &s->gate);
    if (error)
        server_refuse(s, "make", "the gate before the data mount", error);
    data->ops = &gate_ops;
    data->user = s->gate;
}

static void start_sessions(struct server *s)
{
    int error = reads_create(background_limit(), handover_feed(s->handover), &s->reads);
    if (error)
        server_refuse(s, "start", "the thread that watches waiting READs", error);
    bool killed = atomic_load(&s->handover->flags) & HANDOVER_KILLED;
    struct session_config data = {
        .name = "data",
        .fd = FD_DATA,
        .lane = handover_data(s->handover),
        .killed = killed,
        .threads = server_data_threads(s),
        .pulse = &s->handover->pulse,
        .ended = data_ended,
        .ended_user = s,
        .cancel = reads_cancel,
        .cancel_user = s->reads,
    };
    choose_data(s, &data);
    start_session(s, &data, &s->data_session);
    if (!handover_has(FD_CONTROL))
        return;
    struct session_config control = {
        .name = "control",
        .fd = FD_CONTROL,
        .lane = handover_control(s->handover),
        .killed = killed,
        .threads = CONTROL_THREADS,
        .strict_reads = true,
        .ops = &control_ops,
        .user = s->control,
        .interrupts = true,
        .ended = control_ended,
        .ended_user = s,
    };
    start_session(s, &control, &s->control_session);
}

static void say_ready(struct server *s)
{
    if (session_wait(s->data_session))
        return; /* server_run() reports the reason */
    if (s->control_session)
        session_wait(s->control_session);
    log_info("server %u of this mount is ready", atomic_load(&s->handover->generation));
    handover_drop(FD_READY); /* the keeper reports it when both mounts are attached */
    atomic_fetch_or(&s->handover->flags, HANDOVER_READY);
}

/* --- the keeper --- */

static int start_keeper(struct server *s)
{
    char program[PATH_MAX];
    int error = handover_find_program("dealfs-keeper", program, sizeof program);
    if (error)
        return error;
    pid_t keeper;
    char *argv[] = {"dealfs-keeper", s->config.state, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclosefrom_np(&actions, FD_LAST + 1);
    /* it uses vfork: this process may be large */
    error = -posix_spawn(&keeper, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return error;
    atomic_store(&s->handover->keeper, (uint32_t)keeper);
    return process_watch(keeper, &s->keeper);
}

static void replace_keeper(struct server *s)
{
    pid_t dead = s->keeper.id ? s->keeper.id : (pid_t)atomic_load(&s->handover->keeper);
    if (s->keeper.pidfd >= 0) {
        log_error("keeper %d has died: another one is started", (int)dead);
        waitpid(dead, NULL, WNOHANG); /* it may be our child */
        process_forget(&s->keeper);
    }
    int error = standby_claim(s->handover, dead) ? start_keeper(s)
                                                 : process_watch((pid_t)atomic_load(&s->handover->keeper), &s->keeper);
    if (error)
        log_limited(LOG_LEVEL_ERROR, 1, "start a keeper: %s", strerror(-error));
}

/* --- run --- */

/* A keeper that cannot be watched may be alive: a second one would start a second server. */
static bool keeper_is_dead(struct server *s)
{
    if (s->keeper.pidfd < 0)
        return process_watch((pid_t)atomic_load(&s->handover->keeper), &s->keeper) == -ESRCH;
    return process_is_dead(&s->keeper);
}

/* Returns when the data mount has ended, or when only waiting processes are left in it. */
static void server_run(struct server *s)
{
    s->keeper = (struct process){0, -1, -1};
    while (!(atomic_load(&s->handover->flags) & HANDOVER_ABANDONED)) {
        if (keeper_is_dead(s))
            replace_keeper(s);
        struct pollfd fd[] = {
            {.fd = s->ended, .events = POLLIN},
            {.fd = s->keeper.pidfd, .events = POLLIN},
        };
        ready_wait(fd, 2, LOOK_MS);
        if (fd[0].revents & POLLIN)
            return;
    }
}

/* A hanging source must not keep the mount's memory: what is not stored by then will be fetched again. */
static void *end_anyway(void *unused)
{
    (void)unused;
    sleep(CLOSE_SECONDS);
    log_warning("the source or a disk does not answer: the server ends without storing the last segments");
    _exit(SERVER_ENDED);
}

/* The connections have ended and released all threads that were stuck in them, so nothing here waits for the mount. */
static int server_finish(struct server *s)
{
    int error = atomic_load(&s->end_error);
    if (error) {
        log_error("the data mount cannot be served: %s", strerror(-error));
        _exit(1); /* the next server will finish */
    }
    atomic_fetch_or(&s->handover->flags, HANDOVER_ENDED);
    pthread_t bound;
    if (thread_create(&bound, "end", end_anyway, NULL) == 0)
        pthread_detach(bound);
    session_stop(s->data_session);
    control_stop(s->control);
    session_stop(s->control_session);
    reads_stop(s->reads);
    peers_stop(s->peers);
    gate_close(s->gate);
    control_destroy(s->control);
    store_close(s->store);
    peers_destroy(s->peers);
    session_destroy(s->control_session);
    session_destroy(s->data_session);
    reads_destroy(s->reads);
    gate_destroy(s->gate);
    derived_close(s->derived);
    catalog_close(s->catalog);
    process_forget(&s->keeper);
    config_fini(&s->config);
    close(s->ended);
    handover_close(s->handover);
    return SERVER_ENDED;
}

int main(int argc, char **argv)
{
    (void)argv;
    static struct server s = {.keeper = {0, -1, -1}};
    if (argc != 2) {
        fprintf(stderr, "usage: dealfs-server STATE (it is started by dealfs-keeper)\n");
        return SERVER_REFUSED;
    }
    server_prepare(&s);
    server_make_peers(&s);
    server_open_store(&s);
    open_control(&s);
    go_on_staging(&s);
    start_sessions(&s);
    if (s.store)
        server_watch_modes(&s);
    if (atomic_load(&s.handover->level) < LEVEL_NO_PEERS)
        server_start_peers(&s);
    say_ready(&s);
    server_run(&s);
    return server_finish(&s);
}
