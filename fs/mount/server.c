/* dealfs-server STATE: answers the requests of a mount.
 *
 * Threads: the sessions' readers, which run the handlers; the store's, the peers' and RocksDB's own; and the main thread,
 * which starts it all and then only waits: for the end of the data mount, and for the death of the keeper, whom it
 * replaces. The main thread never touches the mount: its death is how the keeper sees that the server is dead, so it must
 * be able to die.
 *
 * A mount made with wait_join begins without a catalog: its data session stands behind a gate, and the peers' thread opens
 * the rest when a courier brings the catalog. */
#include "fs/mount/server.h"

#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/catalog.h"
#include "fs/mount/faults.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CONTROL_THREADS = 2,
    LEAST_THREADS = 4,
    MOST_THREADS = 64,
    ARENAS = 4,
    KEPT_BYTES = 2 << 20,
    CLOSE_SECONDS = 15,
    RETRY_SECONDS = 2,
    TICK_MS = 100,
    RESPAWN_MS = 1000,
    STAGING_DEATHS = 3,
};

static bool may_pass(int error)
{
    return error == -ENOMEM || error == -EAGAIN || error == -EMFILE || error == -ENFILE;
}

/* Before the command has its answer, one line says why there will be none. Nobody restarts a server that refused; but a
 * mount that has been up outlives what may pass: the next server tries a moment later. */
void server_refuse(struct server *s, const char *what, const char *on, int error)
{
    char line[PATH_MAX + 256];
    snprintf(line, sizeof line, "%s %s: %s", what, on, strerror(-error));
    log_error("%s", line);
    if (s->handover && (atomic_load(&s->handover->flags) & HANDOVER_READY) && may_pass(error)) {
        sleep(RETRY_SECONDS);
        _exit(1);
    }
    if (handover_has(FD_READY)) {
        file_write_all(FD_READY, line, strlen(line));
        file_write_all(FD_READY, "\n", 1);
    }
    if (s->handover)
        atomic_fetch_or(&s->handover->flags, HANDOVER_REFUSED);
    _exit(SERVER_REFUSED);
}

/* --- start --- */

static void prepare(struct server *s, const char *state)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    mallopt(M_ARENA_MAX, ARENAS);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES); /* buffers of reads are used again rather than mapped and faulted anew */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    handover_reserve();
    int log = handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO;
    log_open("dealfs-server", log, false);
    int error = handover_open(false, &s->handover);
    if (error)
        server_refuse(s, "map", "the memory of the server before", error);
    atomic_store(&s->handover->server, (uint32_t)getpid());
    error = config_read(state, &s->config);
    if (error)
        server_refuse(s, "read the configuration in", state, error);
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
    };
    int error = control_create(&config, &s->control);
    if (error)
        server_refuse(s, "make", "the control tree", error);
}

/* Before anybody asks how far it is. */
static void go_on_staging(struct server *s)
{
    struct staging *staging = &s->handover->staging;
    uint64_t round = atomic_load(&staging->round);
    if (!round || !s->store)
        return;
    if (atomic_fetch_add(&staging->deaths, 1) >= STAGING_DEATHS) {
        log_error("%d servers have died since staging began: it is not taken up again", STAGING_DEATHS);
        atomic_store(&staging->round, 0);
        return;
    }
    int error = store_stage_start(s->store, round);
    if (error)
        log_error("go on staging: %s", strerror(-error));
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

/* The data mount goes on without it: `dealfs umount` takes it away as well. */
static void control_ended(void *user, int error)
{
    (void)user;
    log_info("the control mount has ended%s%s", error ? ": " : "", error ? strerror(-error) : "");
}

static int data_threads(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int threads = 2 * cores;
    return threads < LEAST_THREADS ? LEAST_THREADS : threads > MOST_THREADS ? MOST_THREADS : threads;
}

static void start_session(struct server *s, const struct session_config *config, struct session **session)
{
    int error = session_create(config, session);
    if (!error)
        error = session_start(*session);
    if (error)
        server_refuse(s, "start the session of", config->name, error);
}

/* Whom the data session asks: the data mount, or the gate before it. */
static void choose_data(struct server *s, struct session_config *data)
{
    const char *control = s->config.nested ? NULL : s->config.control;
    data->ops = faults_apply(&s->config, atomic_load(&s->handover->generation));
    s->data = (struct data_mount){.catalog = s->catalog, .store = s->store, .control = control};
    data->user = &s->data;
    if (!server_waits_for_catalog(s))
        return;
    int error = gate_create(&s->config, control, data->ops, &s->gate);
    if (error)
        server_refuse(s, "make", "the gate before the data mount", error);
    data->ops = &gate_ops;
    data->user = s->gate;
}

static void start_sessions(struct server *s)
{
    struct session_config data = {
        .name = "data",
        .fd = FD_DATA,
        .lane = handover_data(s->handover),
        .threads = data_threads(),
        .ended = data_ended,
        .ended_user = s,
    };
    choose_data(s, &data);
    start_session(s, &data, &s->data_session);
    if (!handover_has(FD_CONTROL))
        return;
    struct session_config control = {
        .name = "control",
        .fd = FD_CONTROL,
        .lane = handover_control(s->handover),
        .threads = CONTROL_THREADS,
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
        return; /* run() says why */
    if (s->control_session)
        session_wait(s->control_session);
    log_info("server %u of this mount serves", atomic_load(&s->handover->generation));
    if (handover_has(FD_READY)) {
        file_write_all(FD_READY, "ready\n", strlen("ready\n"));
        handover_drop(FD_READY);
    }
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
    /* vfork inside: this process may be large, and its threads must not be copied. */
    error = -posix_spawn(&keeper, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return error;
    atomic_store(&s->handover->keeper, (uint32_t)keeper);
    return process_watch(keeper, &s->keeper);
}

static void replace_keeper(struct server *s)
{
    if (s->keeper.pidfd >= 0) {
        log_error("keeper %d is dead: starting another", (int)s->keeper.id);
        waitpid(s->keeper.id, NULL, WNOHANG); /* it may be our child */
        process_forget(&s->keeper);
    }
    int error = start_keeper(s);
    if (error)
        log_limited(LOG_LEVEL_ERROR, 1, "start a keeper: %s", strerror(-error));
}

/* --- run --- */

/* Returns when the data mount has ended. */
static void run(struct server *s)
{
    if (process_watch((pid_t)atomic_load(&s->handover->keeper), &s->keeper))
        s->keeper = (struct process){0, -1, -1};
    for (;;) {
        if (s->keeper.pidfd < 0 || process_is_dead(&s->keeper))
            replace_keeper(s);
        struct pollfd fd[] = {
            {.fd = s->ended, .events = POLLIN},
            {.fd = s->keeper.pidfd, .events = POLLIN},
        };
        poll(fd, 2, s->keeper.pidfd < 0 ? RESPAWN_MS : -1);
        if (fd[0].revents & POLLIN)
            return;
    }
}

/* A source that hangs must not keep the mount's memory: what is not stored by then is fetched again. */
static void *end_anyway(void *unused)
{
    (void)unused;
    sleep(CLOSE_SECONDS);
    log_warning("a read of the source, or a disk, does not come back: ended without storing the last segments");
    _exit(SERVER_ENDED);
}

static void bound_the_end(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_anyway, NULL) == 0)
        pthread_detach(thread);
}

/* Connections that are gone let go of every thread that was stuck in them, so nothing here waits for the mount. */
static int finish(struct server *s)
{
    int error = atomic_load(&s->end_error);
    if (error) {
        log_error("the data mount cannot be served: %s", strerror(-error));
        _exit(1); /* the next server may */
    }
    atomic_fetch_or(&s->handover->flags, HANDOVER_ENDED);
    bound_the_end();
    session_stop(s->data_session);
    session_stop(s->control_session);
    peers_stop(s->peers);
    gate_close(s->gate);
    control_destroy(s->control);
    store_close(s->store);
    peers_destroy(s->peers);
    session_destroy(s->control_session);
    session_destroy(s->data_session);
    gate_destroy(s->gate);
    catalog_close(s->catalog);
    process_forget(&s->keeper);
    config_fini(&s->config);
    close(s->ended);
    handover_close(s->handover);
    return SERVER_ENDED;
}

int main(int argc, char **argv)
{
    static struct server s = {.keeper = {0, -1, -1}};
    if (argc != 2) {
        fprintf(stderr, "usage: dealfs-server STATE (it is started by dealfs-keeper)\n");
        return SERVER_REFUSED;
    }
    prepare(&s, argv[1]);
    server_make_peers(&s);
    server_open_store(&s);
    open_control(&s);
    go_on_staging(&s);
    start_sessions(&s);
    server_start_peers(&s);
    say_ready(&s);
    run(&s);
    return finish(&s);
}
