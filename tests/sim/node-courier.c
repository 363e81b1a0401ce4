/* The couriers of nodes, and the worlds that they form. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "mpi/courier.h"
#include "mpi/signals.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"
#include "tests/sim/strangers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *sim_catalog; /* the file of it */

static void *courier_main(void *argument)
{
    struct sim_node *n = argument;
    struct courier *c = calloc(1, sizeof *c);
    if (!c)
        bail_out("no memory for a courier");
    c->arguments =
        (struct arguments){.state = n->state, .mountpoint = n->host, .groups = n->groups, .lock = -1, .mounter = -1};
    c->arguments.mount = n->bare && (!n->server || n->ended); /* else its keeper starts the next server */
    c->helper.socket = -1;
    c->last_tag = COURIER_TAG;
    net_enter(n->world, n->rank);
    c->signals = signals_open();
    int error = courier_form(c);
    sim_log("courier: node %u %s", n->number, error ? strerror(-error) : "has joined");
    if (!error && strangers_are_in(n->world))
        sim_fail("a world has formed with a node that may not join");
    if (!error)
        error = courier_serve(c);
    sim_log("courier of node %u ends: %s", n->number, error ? strerror(-error) : "in order");
    courier_end(c, error);
    net_leave(courier_in_order(error));
    n->courier_over = true; /* its process ends here, with what MPI has not let go of */
    sim_process_kill(sim_process_self());
    return NULL;
}

/* What the helper of a courier does: `dealfs mount` on this node. The node that has no catalog scans. */
int __wrap_helper_mount(struct courier_helper *h, int catalog, int looked, struct str *why);
int __wrap_helper_mount(struct courier_helper *h, int catalog, int looked, struct str *why)
{
    struct sim_node *n = &sim_nodes[sim_node()];
    char path[sizeof n->state + 16];
    (void)looked, (void)why;
    snprintf(path, sizeof path, "%s/catalog", n->state);
    CLEANUP_CLOSE int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CLEANUP_CLOSE int scanned = catalog < 0 ? open(sim_catalog, O_RDONLY | O_CLOEXEC) : -1;
    if (to < 0 || lseek(catalog < 0 ? scanned : catalog, 0, SEEK_SET) < 0 ||
        file_copy(catalog < 0 ? scanned : catalog, to, UINT64_MAX - 1))
        bail_out("a catalog in %s", path);
    node_start_server(n);
    sim_wait(node_serves, n, SIM_NEVER, "a server");
    h->mounted = true;
    effects[EFFECT_MOUNTED]++;
    return 0;
}

/* The scan does not need what was looked at. It may fail. */
int __wrap_helper_look(struct courier_helper *h, uint32_t part, uint32_t parts, int looked, struct str *why);
int __wrap_helper_look(struct courier_helper *h, uint32_t part, uint32_t parts, int looked, struct str *why)
{
    (void)h, (void)parts, (void)why;
    return sim_random(4) ? file_write_all(looked, &part, sizeof part) : -EIO;
}

void __wrap_helper_undo(struct courier_helper *h, const char *mountpoint);
void __wrap_helper_undo(struct courier_helper *h, const char *mountpoint)
{
    (void)mountpoint;
    if (h->mounted)
        node_stop(&sim_nodes[sim_node()]);
    h->mounted = false;
}

static void start_courier(struct sim_node *n)
{
    struct sim_process *self = sim_process_self();
    pthread_t thread;
    n->courier_over = false;
    n->courier = sim_process_new(n->number, "courier");
    sim_process_enter(n->courier);
    if (thread_create(&thread, "main", courier_main, n))
        bail_out("a thread for a courier");
    sim_process_enter(self);
    pthread_detach(thread);
}

bool nodes_have_left(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (!sim_nodes[i].courier_over)
            return false;
    return true;
}

void nodes_join(bool strangers)
{
    struct net_world *world = net_world_new(sim_options->nodes);
    if (strangers)
        strangers_choose(world, sim_options->nodes);
    uint32_t first = (uint32_t)sim_random(sim_options->nodes);
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        sim_nodes[i].world = world;
        sim_nodes[i].rank = (i + first) % sim_options->nodes;
        start_courier(&sim_nodes[i]);
    }
}

static bool is_joined(struct sim_node *n)
{
    struct world_view view;
    if (!n->serving || peers_view(n->peers, &view))
        return false;
    bool joined = view.state == WORLD_JOINED;
    peers_view_release(&view);
    return joined;
}

bool nodes_joined(void)
{
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (!is_joined(&sim_nodes[i]))
            return false;
    return true;
}

void nodes_lack(const char *catalog)
{
    sim_catalog = catalog;
    uint32_t has = (uint32_t)sim_random(sim_options->nodes);
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        struct sim_node *n = &sim_nodes[i];
        char path[sizeof n->state + 16];
        snprintf(path, sizeof path, "%s/catalog", n->state);
        n->waits = i != has && sim_random(2);
        n->bare = !n->waits && sim_random(2);
        if (!n->waits && (!n->bare || sim_random(2)) && link(catalog, path))
            bail_out("link %s", path);
    }
}

void nodes_await_mounts(void)
{
    for (uint64_t end = sim_now() + 60 * SECOND; !nodes_joined(); clock_sleep(10 * MILLISECOND))
        if (sim_now() > end)
            sim_fail("nodes that wait for a catalog or a mount are in no world after a minute");
}
