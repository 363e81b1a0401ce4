/* See peering.h. */
#include "tests/fs/world/peering.h"

#include "fs/base/cleanup.h"
#include "fs/world/fetch-inside.h"
#include "fs/world/layout.h"
#include "fs/world/peers-inside.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <string.h>

struct dataset dataset;

void peering_set_up(void)
{
    log_to_file();
    dataset_begin(&dataset);
    for (int i = 0; i < SMALL_FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "d%d/%s-%02d", i % 4, i % 3 ? "random" : "sparse", i);
        dataset_add(&dataset, name, i ? (uint64_t)i * 9973 + 1 : 1);
    }
    dataset_add_namesakes(&dataset, 20000);
    dataset_add(&dataset, "empty", 0);
    dataset_add(&dataset, "middle", 5 * MIB + 77);
    dataset_add(&dataset, "sparse-large", 65 * MIB + 12345);
    dataset_scan(&dataset);
}

int peering_done(void)
{
    dataset_end(&dataset);
    return done_testing();
}

/* --- worlds --- */

static void begin(struct fake *f, uint32_t nodes, uint64_t timeout, const char *faults)
{
    uint64_t ram[FAKE_NODES];
    for (int i = 0; i < FAKE_NODES; i++)
        ram[i] = PEERING_RAM;
    fake_begin(f, &dataset, nodes, ram, timeout, faults);
}

void peering_begin(struct fake *f, uint32_t nodes, uint64_t timeout)
{
    begin(f, nodes, timeout, NULL);
}

void peering_join(struct fake *f, uint32_t nodes, uint64_t timeout)
{
    begin(f, nodes, timeout, NULL);
    fake_join(f, 1);
}

void peering_join_faulty(struct fake *f, uint32_t nodes, uint64_t timeout)
{
    static char faults[5000]; /* the nodes point to it */
    faults_set("");
    snprintf(faults, sizeof faults, "file=%s", test_path("faults"));
    begin(f, nodes, timeout, faults);
    fake_join(f, 1);
}

void peering_part(struct fake *f)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_leave(f, i);
    for (uint32_t i = 0; i < f->nodes; i++)
        peering_await(f, i, WORLD_DEGRADED);
}

void peering_harm(struct fake *f, uint32_t node, uint32_t times, enum fake_fault fault)
{
    atomic_store(&f->node[node].times, times);
    atomic_store(&f->node[node].fault, (uint32_t)fault);
}

/* --- what a node says of the world --- */

enum world_state peering_state(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    enum world_state state = view.state;
    peers_view_release(&view);
    return state;
}

void peering_await(struct fake *f, uint32_t node, enum world_state state)
{
    for (int i = 0; peering_state(f, node) != state; i++)
        wait_step(i, "a node is in another state");
}

enum peer_state peering_peer(struct fake *f, uint32_t node, uint32_t other)
{
    struct world_view view = fake_view(f, node);
    if (other >= view.nodes)
        bail_out("node %u knows of no node %u", node, other);
    enum peer_state state = view.peer[other].state;
    peers_view_release(&view);
    return state;
}

struct counts peering_counts(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    struct counts counts = {view.timeouts, view.bad};
    peers_view_release(&view);
    return counts;
}

struct asking peering_asking(struct fake *f, uint32_t node, uint64_t since)
{
    CLEANUP_LIVING struct living *l = membership_living(&f->node[node].peers->membership);
    if (!l)
        bail_out("node %u is in no world", node);
    LOCK_SCOPE(&l->fetches->lock);
    struct asking asking = {.queued = l->fetches->waiting,
                            .left = (uint64_t)l->fetches->left,
                            .first = l->fetches->number + 1,
                            .last = l->fetches->number};
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        const struct fetch *fetch = &l->fetches->fetch[slot];
        if (fetch->state != FETCH_ASKED)
            continue;
        asking.asked++;
        asking.unheard += fetch->heard < since;
        asking.first = fetch->number < asking.first ? fetch->number : asking.first;
    }
    return asking;
}

/* --- reads --- */

static uint32_t find_owned(const struct layout *owners, uint32_t owner, uint32_t skip)
{
    struct extents *e;
    uint32_t found = UINT32_MAX;
    if (extents_create(dataset.catalog, &e))
        bail_out("extents");
    for (uint32_t file = 0; file < catalog_files(dataset.catalog) && found == UINT32_MAX; file++) {
        uint64_t size = dataset_size(&dataset, file);
        if (size > 100000 && size < MIB && layout_owner(owners, 0, extents_first(e, file)) == owner && !skip--)
            found = file;
    }
    extents_destroy(e);
    if (found == UINT32_MAX)
        bail_out("node %u owns too little", owner);
    return found;
}

uint32_t peering_owned(struct fake *f, uint32_t owner, uint32_t n)
{
    struct world_view view = fake_view(f, 0);
    if (!view.known)
        bail_out("no world");
    uint32_t file = find_owned(view.owners, owner, n);
    peers_view_release(&view);
    return file;
}

bool peering_owns(struct fake *f, uint32_t node, uint32_t file)
{
    struct world_view view = fake_view(f, node);
    struct extents *e;
    if (extents_create(dataset.catalog, &e))
        bail_out("extents");
    bool owns = layout_owner(view.owners, 0, extents_first(e, file)) == node;
    extents_destroy(e);
    peers_view_release(&view);
    return owns;
}

int peering_read(struct fake *f, uint32_t node, uint32_t file, enum place *place)
{
    uint64_t size = dataset_size(f->dataset, file);
    struct span span = {.file = file, .length = (uint32_t)(size < SPAN_BYTES ? size : SPAN_BYTES)};
    return read_check(f->node[node].store, f->dataset, &span, place);
}

void peering_reads(struct fake *f, uint32_t node, uint32_t file, enum place from, const char *right, const char *where)
{
    enum place place = PLACES;
    is_int(peering_read(f, node, file, &place), 0, "%s", right);
    is_int(place, from, "%s", where);
}

bool peering_read_all(struct fake *f, uint32_t node)
{
    bool right = true;
    for (uint32_t file = 0; file < catalog_files(dataset.catalog); file++) {
        uint64_t size = dataset_size(&dataset, file);
        for (uint64_t at = 0; at < size; at += SPAN_BYTES - 4096) {
            uint64_t left = size - at;
            struct span span = {file, (uint32_t)(left < SPAN_BYTES ? left : SPAN_BYTES), at};
            int error = read_check(f->node[node].store, &dataset, &span, NULL);
            if (error)
                diag("node %u, file %u at %llu: %s", node, file, (unsigned long long)at, strerror(-error));
            right &= !error;
        }
    }
    return right;
}

uint64_t peering_source_bytes(struct fake *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct store_stats stats;
        fake_stats(f, i, &stats);
        bytes += stats.source_bytes;
    }
    return bytes;
}

/* --- reads in threads of their own --- */

static void *read_one(void *argument)
{
    struct reader *r = argument;
    r->error = peering_read(r->f, r->node, r->file, &r->place);
    atomic_store(&r->over, true);
    return NULL;
}

void reader_start(struct reader *r, struct fake *f, uint32_t node, uint32_t file)
{
    *r = (struct reader){.f = f, .node = node, .file = file};
    if (pthread_create(&r->thread, NULL, read_one, r))
        bail_out("a thread");
}

void readers_start(struct reader *r, uint32_t n, struct fake *f, uint32_t node, uint32_t file)
{
    for (uint32_t i = 0; i < n; i++)
        reader_start(&r[i], f, node, file);
}

bool readers_join(struct reader *r, uint32_t n, enum place from)
{
    bool right = true;
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
        right &= !r[i].error && (from == PLACES || r[i].place == from);
    }
    return right;
}
