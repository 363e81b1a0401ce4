/* A stranger is simulated where its courier describes its node to the others (struct wire_member): they see it like a
 * node that was mounted with those options. Its server is not changed. */
#include "tests/sim/strangers.h"

#include "mpi/wire.h"
#include "tests/sim/faults.h"
#include "tests/sim/net-inside.h"
#include "tests/sim/node.h"

#include <errno.h>
#include <string.h>

enum wrong { NO_MOUNT, DATASET, VERSIONS, OPTIONS, ID, RESIZE, NODES_TOLD, GROUPS_TOLD, WRONGS };
static const char *const names[WRONGS] = {
    [NO_MOUNT] = "has no mount",          [DATASET] = "has another dataset",    [VERSIONS] = "has other versions",
    [OPTIONS] = "has other options",      [ID] = "has the id of another",       [RESIZE] = "resizes images",
    [NODES_TOLD] = "wants another world", [GROUPS_TOLD] = "wants other groups",
};

static struct {
    const struct net_world *world;
    uint32_t rank;
    enum wrong wrong;
} stranger;

void strangers_choose(const struct net_world *world, uint32_t nodes)
{
    stranger.world = world;
    stranger.rank = (uint32_t)sim_random(nodes);
    stranger.wrong = (enum wrong)sim_random(WRONGS);
    sim_log("a world is to form, in which node %u %s", stranger.rank, names[stranger.wrong]);
    effects[EFFECT_STRANGERS]++;
}

bool strangers_are_in(const struct net_world *world)
{
    return stranger.world == world;
}

/* Another node's: there are two at least. */
static void take_id(struct world_node *node)
{
    const struct sim_node *other = &sim_nodes[(sim_node() + 1) % sim_options->nodes];
    memcpy(node->id, other->id, sizeof node->id);
}

/* A node tells what it has mounted only when it has. */
static void change(struct wire_member *m)
{
    bool live = m->state == MEMBER_LIVE;
    m->catalog.byte[0] ^= live && stranger.wrong == DATASET;
    m->versions.byte[0] ^= live && (stranger.wrong == DATASET || stranger.wrong == VERSIONS);
    m->options ^= live && stranger.wrong == OPTIONS;
    if (live && stranger.wrong == ID)
        take_id(&m->node);
    if (stranger.wrong == RESIZE)
        m->resize = 256, m->quality = 90;
    m->nodes = stranger.wrong == NODES_TOLD ? sim_options->nodes + 1 : m->nodes;
    m->groups += stranger.wrong == GROUPS_TOLD;
}

int strangers_speak(uint32_t rank, void *bytes, size_t n)
{
    struct wire_member m;
    if (stranger.world != net_me->world || stranger.rank != rank || n != sizeof m)
        return 0;
    if (stranger.wrong == NO_MOUNT)
        return -ENOENT;
    memcpy(&m, bytes, n);
    change(&m);
    memcpy(bytes, &m, n);
    return 0;
}
