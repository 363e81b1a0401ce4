/* Simulates keepers and launchers: they restart servers and worlds that have ended. */
#include "tests/sim/keepers.h"

#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

static uint64_t short_time(uint64_t most)
{
    return most / 20 + sim_random(most);
}

static bool is_to_start(void *node)
{
    const struct sim_node *n = node;
    return !n->stopping && sim_process_is_dead(n->server);
}

static void *keep_server(void *argument)
{
    struct sim_node *n = argument;
    for (;;) {
        sim_wait(is_to_start, n, SIM_NEVER, "the death of a server");
        node_lose_server(n);
        clock_sleep(short_time(SECOND));
        node_start_server(n);
    }
    return NULL;
}

static void *launch_worlds(void *unused)
{
    (void)unused;
    for (;;) {
        sim_wait(nodes_have_left, NULL, SIM_NEVER, "the end of a world");
        if (sim_nodes[0].stopping)
            return NULL;
        clock_sleep(short_time(3 * SECOND));
        sim_log("a world is to form");
        nodes_join(!faults_ended() && sim_random(4) == 0);
    }
    return NULL;
}

void keepers_begin(void)
{
    pthread_t thread;
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (thread_create(&thread, "keeper", keep_server, &sim_nodes[i]))
            bail_out("a thread");
    if (thread_create(&thread, "launcher", launch_worlds, NULL))
        bail_out("a thread");
}
