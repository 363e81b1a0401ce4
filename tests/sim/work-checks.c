/* Checks while a world lives, and checks of released resources at the end. */
#include "fs/base/file.h"
#include "fs/store/pool.h"
#include "tests/sim/memory.h"
#include "tests/sim/work-inside.h"
#include "tests/sim/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 256 };

/* --- what is checked all the time --- */

static struct {
    const struct net_world *world;
    uint64_t k;
    struct digest layout;
} turn_of[TURNS];

static void check_turn(const struct sim_node *n, const struct world_view *view)
{
    char digest[DIGEST_TEXT];
    for (int i = 0; i < TURNS; i++) {
        if (turn_of[i].world == n->world && turn_of[i].k == view->last.k) {
            if (!digest_equal(&turn_of[i].layout, &view->layout))
                sim_fail("node %u has another layout in turn %" PRIu64 " than others", n->number, view->last.k);
            return;
        }
        if (!turn_of[i].world) {
            turn_of[i].world = n->world;
            turn_of[i].k = view->last.k;
            turn_of[i].layout = view->layout;
            sim_log("the layout of turn %" PRIu64 " is %s", view->last.k, digest_format(&view->layout, digest));
            return;
        }
    }
}

/* Reading takes time, in which the world may turn, or the server die. */
static bool is_still_so(const struct sim_node *n, const struct world_view *before)
{
    struct world_view now;
    if (!n->serving || n->generation != n->seen_generation || peers_view(n->peers, &now))
        return false;
    bool same = digest_equal(&now.layout, &before->layout) && !now.unsaved;
    peers_view_release(&now);
    return same;
}

/* A server that says nothing of it has saved its world: what the one after it needs. */
static void check_saved(struct sim_node *n, const struct world_view *view)
{
    struct str text = STR_INIT;
    char path[160], digest[DIGEST_TEXT];
    bool new = n->seen_turn != view->last.k || n->seen_world != n->world;
    n->seen_turn = view->last.k;
    n->seen_world = n->world;
    if (new || view->unsaved || n->generation != n->seen_generation) {
        n->seen_generation = n->generation;
        return;
    }
    snprintf(path, sizeof path, "%s/world", n->state);
    int error = file_read(AT_FDCWD, path, 4096, &text);
    bool saved = !error && strstr(text.data, digest_format(&view->layout, digest));
    if (!saved && is_still_so(n, view))
        sim_fail("node %u says that its world is saved, and it is not: turn %" PRIu64 ", layout %s; file: %s",
                 n->number, view->last.k, digest_format(&view->layout, digest), error ? strerror(-error) : text.data);
    str_fini(&text);
}

static void look_at(struct sim_node *n)
{
    struct world_view view;
    if (!n->serving || n->courier_over || sim_process_is_stopped(n->server) || peers_view(n->peers, &view))
        return;
    if (view.state == WORLD_JOINED && nodes_joined())
        check_turn(n, &view);
    if (view.state == WORLD_JOINED)
        check_saved(n, &view);
    peers_view_release(&view);
}

static void *monitor(void *unused)
{
    (void)unused;
    while (!work.ending) {
        clock_sleep(SECOND);
        for (uint32_t i = 0; i < sim_options->nodes; i++)
            look_at(&sim_nodes[i]);
    }
    return work_done();
}

void checks_begin(void)
{
    work_start("monitor", monitor, NULL, 0);
}

/* --- in the end --- */

/* Where there is room for all: once in each group, except the stripe that no node has room for. */
static uint64_t bytes_to_load(void)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < catalog_files(sim_dataset.catalog); i++) {
        uint64_t size = dataset_size(&sim_dataset, i);
        bytes += size < EXTENT_BYTES ? size : size - EXTENT_BYTES;
    }
    return bytes * sim_nodes[0].groups;
}

bool work_is_loaded(void)
{
    uint64_t loaded = 0;
    struct store_stats stats;
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (sim_nodes[i].store) {
            store_stats(sim_nodes[i].store, &stats);
            loaded += stats.source_bytes;
        }
    return loaded >= bytes_to_load();
}

/* What is in progress when owners change may be read again by the new ones: the files of all READs and loads. */
static uint64_t bytes_in_hand(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < catalog_files(sim_dataset.catalog); i++) {
        uint64_t size = dataset_size(&sim_dataset, i);
        most = size < EXTENT_BYTES && size > most ? size : most;
    }
    return most * (sim_options->readers + sim_options->nodes * SIM_SOURCE_THREADS);
}

/* Each stripe caches up to POOL_SPARES buffers of each size, and the pool some areas. They are never given back. */
static uint64_t count_spare(struct pool *pool)
{
    uint64_t bytes = 0;
    for (enum pool_kind size = 0; size < POOL_SIZES; size++) {
        bytes += (uint64_t)pool->areas[size].areas * pool_area_bytes[size];
        for (int i = 0; i < THREAD_STRIPES; i++)
            for (int j = 0; j < pool->stripe[i].spares[size]; j++) {
                const struct buffer *b = pool->stripe[i].spare[size][j];
                bytes += sizeof *b + (b->shared ? 0 : pool_bytes[size]);
            }
    }
    return bytes;
}

static void check_room(struct sim_node *n, struct store_stats *stats)
{
    uint64_t began = sim_now();
    /* A question of a node that asks no more may still wait for a slow call of the source. */
    while (store_stats(n->store, stats), stats->parked && sim_now() - began < BOUND)
        nanosleep(&(struct timespec){.tv_nsec = 10 * MILLISECOND}, NULL);
    if (stats->parked)
        sim_fail("node %u: %" PRIu64 " reads are parked, and nobody waits", n->number, stats->parked);
    began = sim_now(); /* what moves may still wait for a node that is silent */
    while (store_flush(n->store) == -EBUSY)
        if (sim_now() - began > BOUND)
            sim_fail("node %u: rooms are not given back within a minute", n->number);
    /* A tier may still look for room: with 4 MiB, and only for a while. */
    while (!memory_is_idle(n->number, count_spare(store_pool(n->store))) && sim_now() - began < BOUND)
        nanosleep(&(struct timespec){.tv_nsec = 10 * MILLISECOND}, NULL);
    memory_check_idle(n->number, count_spare(store_pool(n->store)));
    store_stats(n->store, stats);
}

void work_check_idle(void)
{
    uint64_t loaded = 0;
    /* A slow load may be begun again by the node that a turn makes the owner meanwhile. */
    bool ample = sim_options->nodes >= 2 * sim_nodes[0].groups && !work.striped && !work.slow;
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        struct store_stats stats;
        check_room(&sim_nodes[i], &stats);
        loaded += stats.source_bytes;
        ample &= sim_nodes[i].ample;
    }
    uint64_t least = bytes_to_load(), most = least + work.early * bytes_in_hand();
    if (!faults_any() && ample && work.staged && (loaded < least || loaded > most))
        sim_fail("%" PRIu64 " bytes were read from the source, and not %" PRIu64 " to %" PRIu64, loaded, least, most);
    lists_check();
}
