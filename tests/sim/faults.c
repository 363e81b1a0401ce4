#include "tests/sim/faults.h"

#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "tests/lib/tap.h"
#include "tests/sim/bound.h"
#include "tests/sim/halts.h"
#include "tests/sim/keepers.h"
#include "tests/sim/node.h"
#include "tests/sim/power.h"
#include "tests/sim/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool ending, over;
    bool lack; /* some node has lacked memory */
    uint32_t done;
} faults;

uint64_t effects[EFFECTS];
const char *const effect_names[EFFECTS] = {
    [EFFECT_POWER] = "losses of power",
    [EFFECT_UNNAMED] = "renames lost",
    [EFFECT_TORN] = "files torn",
    [EFFECT_RECALLED] = "worlds recalled",
    [EFFECT_LOST] = "messages lost",
    [EFFECT_LEFT] = "messages of the dead",
    [EFFECT_CUT] = "connections reset",
    [EFFECT_BELLS] = "worlds with bells",
    [EFFECT_RUNG] = "bells rung",
    [EFFECT_SPOILT] = "answers spoilt",
    [EFFECT_HALTED] = "processes halted in a turn",
    [EFFECT_STRANGERS] = "joins refused",
    [EFFECT_MOUNTED] = "nodes mounted by their world",
    [EFFECT_ROCKS] = "times RocksDB opened",
    [EFFECT_MEMORY] = "KiB of memory in servers",
    [EFFECT_REWRITTEN] = "files rewritten",
    [EFFECT_WHILE_READ] = "while read",
    [EFFECT_STALE] = "reads stale for it",
};

/* --- writes --- */

int faults_write(const char *what)
{
    struct sim_node *n = &sim_nodes[sim_node()];
    if (!n->disk_error || sim_now() > n->disk_until || sim_random(2))
        return 0;
    sim_log("a write of %s fails: %s", what, strerror(-n->disk_error));
    return n->disk_error;
}

/* What the state directory is told (file_write_atomic is wrapped at link time). */
int __real_file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode);
int __wrap_file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode);
int __wrap_file_write_atomic(int dir, const char *path, const void *bytes, size_t n, mode_t mode)
{
    int error = strstr(path, "/state-") ? faults_write(strrchr(path, '/') + 1) : 0;
    return error ? error : __real_file_write_atomic(dir, path, bytes, n, mode);
}

/* --- memory for much at once --- */

enum { MUCH = 64 << 10 };
#define SETTLED (3 * SECOND) /* loads that failed have told all that wait for them */
#define RESTART (2 * SECOND)
#define END_OF_WORLD (3 * SECOND)
#define LOST_MESSAGES (60 * SECOND) /* the world should end in half of this time */

static bool lacks_memory(size_t n)
{
    if (n < MUCH)
        return false;
    const struct sim_node *node = &sim_nodes[sim_node()];
    if (sim_process_self() != node->server || sim_now() > node->lack_until || sim_random(4))
        return false;
    sim_log("no memory for %zu bytes", n);
    errno = ENOMEM;
    return true;
}

bool faults_memory(size_t n)
{
    return faults.lack && lacks_memory(n);
}

/* --- answers of couriers --- */

enum spoil_way __real_spoil_next(struct spoil *spoil);
enum spoil_way __wrap_spoil_next(struct spoil *spoil);
enum spoil_way __wrap_spoil_next(struct spoil *spoil)
{
    (void)spoil;
    enum spoil_way way = __real_spoil_next(&sim_nodes[sim_node()].spoil);
    effects[EFFECT_SPOILT] += way != SPOIL_NONE;
    return way;
}

static void set_source(const struct sim_node *n, const char *specification)
{
    if (__real_file_write_atomic(AT_FDCWD, n->faults + strlen("file="), specification, strlen(specification), 0644))
        bail_out("the faults of a source");
}

/* --- the faults --- */

static uint64_t some_time(uint64_t most)
{
    return most / 20 + sim_random(most);
}

struct stopped {
    struct sim_process *process;
    struct sim_node *server; /* whose server it is; NULL: it is a courier */
    uint64_t time;
};

static void *go_on(void *argument)
{
    struct stopped *s = argument;
    clock_sleep(s->time);
    if (!sim_process_is_dead(s->process)) {
        sim_log("a process goes on");
        sim_process_continue(s->process);
        if (s->server && s->server->server == s->process)
            node_goes_on(s->server);
    }
    free(s);
    return NULL;
}

static void stop_process(struct sim_process *process, struct sim_node *server, uint64_t time)
{
    struct stopped *s = malloc(sizeof *s);
    pthread_t thread;
    if (!s)
        bail_out("no memory");
    *s = (struct stopped){process, server, time};
    sim_process_stop(process);
    if (thread_create(&thread, "go-on", go_on, s))
        bail_out("a thread");
    pthread_detach(thread);
}

static void stop_server(struct sim_node *n)
{
    uint64_t time = some_time(12 * SECOND);
    if (!n->serving || sim_process_is_stopped(n->server))
        return;
    sim_log("fault: the server of node %u stops for %" PRIu64 " ms", n->number, time / MILLISECOND);
    n->stopped_at = sim_now();
    bound_peers(sim_now() + time);
    stop_process(n->server, n, time);
}

static void kill_server(struct sim_node *n)
{
    if (!n->serving || sim_process_is_dead(n->server))
        return;
    sim_log("fault: the server of node %u is killed", n->number);
    bound_peers(sim_now() + RESTART);
    sim_process_kill(n->server);
    node_lose_server(n);
}

static bool has_courier(const struct sim_node *n)
{
    return n->courier && !n->courier_over && !sim_process_is_dead(n->courier);
}

static void stop_courier(struct sim_node *n)
{
    uint64_t time = some_time(12 * SECOND);
    if (!has_courier(n) || sim_process_is_stopped(n->courier))
        return;
    sim_log("fault: the courier of node %u stops for %" PRIu64 " ms", n->number, time / MILLISECOND);
    bound_peers(sim_now() + time);
    stop_process(n->courier, NULL, time);
}

static void kill_courier(struct sim_node *n)
{
    if (has_courier(n) && sim_random(4))
        net_await_message(n->world, n->rank, sim_now() + SECOND);
    if (!has_courier(n))
        return;
    sim_log("fault: the courier of node %u is killed", n->number);
    sim_process_kill(n->courier);
    n->courier_over = true;
    bound_peers(sim_now() + END_OF_WORLD);
    net_killed(n->world, n->rank);
}

static void silence_direction(struct sim_node *n)
{
    uint32_t to = (uint32_t)sim_random(sim_options->nodes);
    uint64_t time = some_time(15 * SECOND);
    if (to == n->number || !sim_nodes[to].courier)
        return;
    sim_log("fault: what node %u says to node %u does not arrive for %" PRIu64 " ms", n->number, to,
            time / MILLISECOND);
    bound_peers(sim_now() + time);
    net_silence(n->rank, sim_nodes[to].rank, sim_now() + time);
}

static void reset_connection(struct sim_node *n)
{
    const struct sim_node *to = &sim_nodes[sim_random(sim_options->nodes)];
    if (to == n || !has_courier(n) || !has_courier(to) || to->world != n->world)
        return;
    sim_log("fault: the connection of node %u to node %u is reset", n->number, to->number);
    bound_peers(sim_now() + LOST_MESSAGES);
    net_cut(n->world, n->rank, to->rank);
    if (sim_random(2))
        net_cut(n->world, to->rank, n->rank);
}

static void spoil_answers(struct sim_node *n)
{
    enum spoil_way way = sim_random(2) ? SPOIL_DAMAGE : SPOIL_SHORT;
    n->spoil.every[way] = 1 + (uint32_t)sim_random(6);
    sim_log("fault: node %u %s one of %u answers", n->number, way == SPOIL_DAMAGE ? "damages" : "cuts",
            n->spoil.every[way]);
}

static void delay_messages(struct sim_node *n)
{
    uint64_t most = (1 + sim_random(300)) * MILLISECOND;
    (void)n;
    sim_log("fault: messages take up to %" PRIu64 " ms", most / MILLISECOND);
    bound_messages(most);
    net_delay(most);
}

void faults_slow(const struct sim_node *n, uint64_t milliseconds)
{
    char text[64];
    bound_source(milliseconds * MILLISECOND);
    snprintf(text, sizeof text, "delay=%" PRIu64, milliseconds);
    sim_log("fault: the source of node %u: %s", n->number, text);
    set_source(n, text);
}

/* Its errors end, but calls that have begun still fail. */
static void settle_source(struct sim_node *n)
{
    uint64_t soon = sim_now() + SETTLED;
    n->fails_until = n->fails_until == SIM_NEVER ? soon : n->fails_until;
    n->changes_until = n->changes_until == SIM_NEVER ? soon : n->changes_until;
}

static void slow_source(struct sim_node *n)
{
    faults_slow(n, 1 + sim_random(2000));
    settle_source(n);
}

static void fail_source(struct sim_node *n)
{
    bool changed = sim_random(2);
    sim_log("fault: the source of node %u %s", n->number, changed ? "changes" : "fails");
    settle_source(n);
    *(changed ? &n->changes_until : &n->fails_until) = SIM_NEVER;
    set_source(n, changed ? "errno=ESTALE" : "errno=EIO");
}

static void rewrite_source(struct sim_node *n)
{
    (void)n;
    rewrite_some();
}

static void heal_source(struct sim_node *n)
{
    set_source(n, "");
    settle_source(n);
}

static void fail_writes(struct sim_node *n)
{
    n->disk_error = sim_random(2) ? -ENOSPC : -EIO;
    n->disk_until = sim_now() + some_time(10 * SECOND);
    sim_log("fault: writes of node %u fail: %s", n->number, strerror(-n->disk_error));
}

static void lack_memory(struct sim_node *n)
{
    uint64_t time = some_time(3 * SECOND);
    sim_log("fault: node %u lacks memory for %" PRIu64 " ms", n->number, time / MILLISECOND);
    faults.lack = true;
    n->lack_until = sim_now() + time;
}

static void step_clock(struct sim_node *n)
{
    if (!n->serving)
        return;
    sim_log("fault: the clock of node %u steps", n->number);
    sim_clock_step(n->server, (int64_t)sim_random(7200 * SECOND) - (int64_t)(3600 * SECOND));
}

static void end_world(struct sim_node *n)
{
    if (!n->world)
        return;
    sim_log("fault: the launcher asks the courier of node %u to leave", n->number);
    bound_peers(sim_now() + END_OF_WORLD);
    net_signal(n->world, n->rank);
}

/* All of a node goes; what was in memory is lost, and what was not on disk. */
static void restart_node(struct sim_node *n)
{
    if (!n->serving)
        return;
    sim_log("fault: node %u restarts", n->number);
    kill_courier(n);
    kill_server(n);
    dir_remove_tree(AT_FDCWD, n->ram);
    if (dir_make(n->ram, 0700))
        bail_out("a directory");
    atomic_store(&n->staging.round, 0);
    n->generation = 0;
    n->mark = (struct world_mark){0};
    power_fail(n);
}

static void halt_process(struct sim_node *n)
{
    bool kills = sim_random(2);
    if (sim_random(2))
        halts_await(n, n->server, kills ? kill_server : stop_server);
    else
        halts_await(n, n->courier, kills ? kill_courier : stop_courier);
}

static void (*const kinds[])(struct sim_node *n) = {
    stop_server, kill_server,  stop_courier,     kill_courier,  silence_direction, delay_messages,
    slow_source, fail_source,  heal_source,      fail_writes,   lack_memory,       step_clock,
    end_world,   restart_node, reset_connection, spoil_answers, rewrite_source,    halt_process,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A seed has only some of them, so that others last. */
static void *cause_faults(void *unused)
{
    (void)unused;
    uint32_t mask =
        (uint32_t)sim_random(1u << KINDS) & (uint32_t)(sim_random(2) ? UINT32_MAX : sim_random(1u << KINDS));
    uint64_t often = (1 + sim_random(8)) * SECOND;
    while (!faults.ending && faults.done < sim_options->faults) {
        clock_sleep(some_time(often));
        uint32_t kind = (uint32_t)sim_random(KINDS);
        if (faults.ending || !(mask & 1u << kind))
            continue;
        faults.done++;
        kinds[kind](&sim_nodes[sim_random(sim_options->nodes)]);
    }
    faults.over = true;
    return NULL;
}

bool faults_any(void)
{
    return faults.done > 0;
}

/* --- begin and end --- */

void faults_begin(void)
{
    pthread_t thread;
    keepers_begin();
    if (thread_create(&thread, "faults", cause_faults, NULL))
        bail_out("a thread");
}

bool faults_ended(void)
{
    return faults.ending;
}

static bool all_serve(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (!sim_nodes[i].serving)
            return false;
    return true;
}

static bool is_over(void *unused)
{
    (void)unused;
    return faults.over;
}

void faults_end(void)
{
    faults.ending = true;
    sim_wait(is_over, NULL, SIM_NEVER, "the last fault");
    rewrite_end();
    net_delay(MILLISECOND / 30);
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        struct sim_node *n = &sim_nodes[i];
        if (n->server && !sim_process_is_dead(n->server))
            sim_process_continue(n->server);
        if (n->serving)
            node_goes_on(n);
        if (has_courier(n))
            sim_process_continue(n->courier);
        heal_source(n);
        n->spoil = (struct spoil){0};
        n->disk_error = 0;
        n->lack_until = 0;
    }
    if (!sim_wait(all_serve, NULL, sim_now() + 60 * SECOND, "all servers"))
        sim_fail("a server does not serve within a minute after the last fault");
    for (uint64_t end = sim_now() + 60 * SECOND; !nodes_joined(); clock_sleep(SECOND / 10))
        if (sim_now() > end)
            sim_fail("no world has all nodes within a minute after the last fault");
}
