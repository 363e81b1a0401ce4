/* The couriers of nodes, and the worlds that they form. */
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "mpi/courier.h"
#include "mpi/signals.h"
#include "tests/lib/tap.h"
#include "tests/sim/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *courier_main(void *argument)
{
    struct sim_node *n = argument;
    struct courier *c = calloc(1, sizeof *c);
    if (!c)
        bail_out("no memory for a courier");
    c->arguments =
        (struct arguments){.state = n->state, .mountpoint = n->host, .groups = n->groups, .lock = -1, .mounter = -1};
    c->helper.socket = -1;
    c->last_tag = COURIER_TAG;
    net_enter(n->world, n->rank);
    c->signals = signals_open();
    int error = courier_form(c);
    sim_log("courier: node %u %s", n->number, error ? strerror(-error) : "has joined");
    if (!error)
        error = courier_serve(c);
    sim_log("courier of node %u ends: %s", n->number, error ? strerror(-error) : "in order");
    courier_end(c, error);
    net_leave(courier_in_order(error));
    n->courier_over = true; /* its process ends here, with what MPI has not let go of */
    sim_process_kill(sim_process_self());
    return NULL;
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

void nodes_join(void)
{
    struct net_world *world = net_world_new(sim_options->nodes);
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
    uint32_t has = (uint32_t)sim_random(sim_options->nodes);
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        struct sim_node *n = &sim_nodes[i];
        char path[sizeof n->state + 16];
        snprintf(path, sizeof path, "%s/catalog", n->state);
        n->waits = i != has && sim_random(2);
        if (!n->waits && link(catalog, path))
            bail_out("link %s", path);
    }
}

void nodes_await_catalog(void)
{
    for (uint64_t end = sim_now() + 60 * SECOND; !nodes_joined(); clock_sleep(10 * MILLISECOND))
        if (sim_now() > end)
            sim_fail("nodes that wait for a catalog are in no world after a minute");
}
