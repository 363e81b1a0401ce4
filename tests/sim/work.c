#include "tests/sim/work.h"

#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/base/thread.h"
#include "fs/plan/order.h"
#include "fs/plan/stop.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/bound.h"
#include "tests/sim/memory.h"
#include "tests/sim/node.h"
#include "tests/sim/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND (60 * SECOND)
#define SLACK (5 * SECOND)

enum { THINK_MS = 800, BATCH = 2, EXCHANGE_S = 20, TURNS = 256 };

static struct {
    bool ending;
    uint32_t working; /* threads */
    uint64_t reads, failed, plans, stale, exchanges, staged;
} work;

static uint64_t stopped_so_far(const struct sim_node *n)
{
    return n->stopped + (n->stopped_at ? sim_now() - n->stopped_at : 0);
}

/* For as long as its server is stopped, nobody can answer. */
static void check_time(const struct sim_node *n, const struct sim_request *r, uint64_t bound)
{
    if (sim_now() - r->began > bound + stopped_so_far(n) - r->stopped)
        sim_fail("node %u: %s took %" PRIu64 " ms", n->number, r->text ? r->text : "a read",
                 (sim_now() - r->began) / MILLISECOND);
}

/* ---- readers ---- */

static void check_read(const struct sim_node *n, const struct sim_request *r)
{
    check_time(n, r, bound_of(n, r));
    work.reads++;
    if (!r->error && !r->right)
        sim_fail("node %u: file %u at %" PRIu64 ", %u bytes from %s: wrong bytes", n->number, r->span.file,
                 r->span.offset, r->span.length, place_names[r->place]);
    bool source = r->error == n->source_error && n->source_until >= r->began;
    bool memory = r->error == -ENOMEM && n->lack_until >= r->began;
    bool stale = r->error == -ESTALE && rewrite_has(r->span.file);
    effects[EFFECT_STALE] += stale;
    if (r->error && !source && !memory && !stale)
        sim_fail("node %u: file %u at %" PRIu64 ", %u bytes: %s, and its source is well", n->number, r->span.file,
                 r->span.offset, r->span.length, strerror(-r->error));
    work.failed += r->error != 0;
}

static void *read_files(void *argument)
{
    struct sim_node *n = argument;
    uint64_t random = sim_random(UINT64_MAX);
    while (!work.ending) {
        clock_sleep(1 + sim_random(2 * THINK_MS * MILLISECOND));
        uint32_t file = (uint32_t)sim_random(catalog_files(sim_dataset.catalog));
        if (dataset_size(&sim_dataset, file) == 0)
            continue;
        struct sim_request r = {.span = dataset_random_span(&sim_dataset, file, &random)};
        node_ask(n, &r);
        check_read(n, &r);
    }
    work.working--;
    return NULL;
}

/* ---- jobs ---- */

struct job {
    uint32_t number;
    uint64_t seed;
    uint32_t *order, *list[NET_NODES];
    uint32_t files, length; /* length: of a rank's list */
};

static int ask(uint32_t node, const char *text, uint64_t bound, struct str *reply)
{
    struct sim_request r = {.text = text, .reply = STR_INIT};
    node_ask(&sim_nodes[node], &r);
    check_time(&sim_nodes[node], &r, bound);
    str_clear(reply);
    str_add(reply, r.reply.data ? r.reply.data : "", r.reply.length);
    if (r.error)
        sim_log("node %u: %s: %s: %s", node, text, strerror(-r.error), r.reply.data ? r.reply.data : "");
    if (r.error && !faults_any())
        sim_fail("node %u: %s: %s: %s", node, text, strerror(-r.error), r.reply.data ? r.reply.data : "");
    str_fini(&r.reply);
    return r.error;
}

static void exchange(const struct job *j, uint64_t epoch)
{
    struct str reply = STR_INIT;
    char text[128];
    uint64_t wait = faults_any() ? 1 + sim_random(EXCHANGE_S) : EXCHANGE_S;
    snprintf(text, sizeof text, "exchange epoch=%" PRIu64 " fraction=0.%" PRIu64 " seed=%" PRIu64 " wait=%" PRIu64,
             epoch, 1 + sim_random(9), j->seed, wait);
    ask((uint32_t)sim_random(sim_options->nodes), text, wait * SECOND + SLACK, &reply);
    work.exchanges++;
    str_fini(&reply);
}

static bool find_text(const struct str *json, const char *key, char *to, size_t room)
{
    const char *value;
    long n = json_find(json->data, json->length, key, &value);
    if (n < 3 || (size_t)n > room || value[0] != '"')
        return false;
    snprintf(to, room, "%.*s", (int)n - 2, value + 1);
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What all ranks have in a step is the global batch of it; the last one may be short. */
static void check_lists(const struct job *j, uint64_t epoch)
{
    uint32_t ranks = sim_options->nodes, got[NET_NODES * BATCH], want[NET_NODES * BATCH];
    for (uint32_t at = 0; at < j->length; at += BATCH) {
        uint32_t batch = j->length - at < BATCH ? j->length - at : BATCH, many = ranks * batch;
        for (uint32_t r = 0; r < ranks; r++)
            memcpy(got + r * batch, j->list[r] + at, batch * sizeof *got);
        memcpy(want, j->order + at * ranks, many * sizeof *want);
        qsort(got, many, sizeof *got, by_number);
        qsort(want, many, sizeof *want, by_number);
        if (memcmp(got, want, many * sizeof *got))
            sim_fail("job %u, epoch %" PRIu64 ", step %u: the lists of all ranks are not the global batch", j->number,
                     epoch, at / BATCH);
    }
}

/* Rank 0 chooses the layout; all ask for lists of it, each its own node. A plan that was made without a world has none,
 * and is known by its digest. */
static int plan_epoch(struct job *j, uint64_t epoch)
{
    static const struct plan_stop never = {NULL, NULL};
    struct str reply = STR_INIT;
    char text[256], digest[64] = "", pinned[96] = "";
    uint32_t ranks = sim_options->nodes;
    int n = snprintf(text, sizeof text, "plan epoch=%" PRIu64 " ranks=%u batch=%d tail=drop seed=%" PRIu64, epoch,
                     ranks, BATCH, j->seed);
    snprintf(text + n, sizeof text - (size_t)n, " reply=summary");
    int error = ask((uint32_t)sim_random(ranks), text, BOUND, &reply);
    bool world = !error && find_text(&reply, "layout", digest, sizeof digest);
    if (world)
        snprintf(pinned, sizeof pinned, " layout=%s", digest);
    if (!error && (!world || sim_random(2)) && find_text(&reply, "digest", digest, sizeof digest))
        snprintf(pinned + strlen(pinned), sizeof pinned - strlen(pinned), " digest=%s", digest);
    for (uint32_t rank = 0; rank < ranks && !error; rank++) {
        snprintf(text + n, sizeof text - (size_t)n, " reply=u32 rank=%u%s", rank, pinned);
        error = ask(rank, text, BOUND, &reply);
        if (!error && reply.length != j->length * sizeof(uint32_t))
            sim_fail("node %u: %s: %zu bytes", rank, text, reply.length);
        if (!error)
            memcpy(j->list[rank], reply.data, reply.length);
    }
    if (!error && order_seeded(j->order, j->files, j->seed + epoch, &never))
        bail_out("an order");
    if (!error)
        check_lists(j, epoch);
    str_fini(&reply);
    return error;
}

static void *run_job(void *argument)
{
    struct job *j = argument;
    for (uint64_t epoch = 0; !work.ending; epoch++) {
        clock_sleep(1 + sim_random(4 * SECOND));
        if (!work.ending && epoch % 2)
            exchange(j, epoch);
        int error = work.ending ? 0 : plan_epoch(j, epoch);
        work.plans += !error;
        work.stale += error != 0;
    }
    work.working--;
    return NULL;
}

static void start(const char *name, void *(*body)(void *), void *argument, uint32_t node)
{
    struct sim_process *self = sim_process_self();
    pthread_t thread;
    sim_process_enter(sim_nodes[node].clients);
    if (thread_create(&thread, name, body, argument))
        bail_out("a thread");
    sim_process_enter(self);
    pthread_detach(thread);
    work.working++;
}

static void start_job(uint32_t number)
{
    struct job *j = calloc(1, sizeof *j);
    uint32_t files = catalog_files(sim_dataset.catalog);
    if (!j || !(j->order = calloc(files, sizeof *j->order)))
        bail_out("no memory for a job");
    j->number = number;
    j->files = files;
    j->seed = sim_random(1000);
    j->length = files / sim_options->nodes;
    for (uint32_t i = 0; i < sim_options->nodes; i++)
        if (!(j->list[i] = calloc(j->length, sizeof **j->list)))
            bail_out("no memory for a job");
    start("job", run_job, j, (uint32_t)sim_random(sim_options->nodes));
}

/* ---- staging ---- */

static void *stage(void *unused)
{
    (void)unused;
    struct str reply = STR_INIT;
    char state[16] = "";
    clock_sleep(1 + sim_random(5 * SECOND));
    uint32_t node = (uint32_t)sim_random(sim_options->nodes);
    int error = ask(node, "stage\n", BOUND, &reply);
    uint64_t began = sim_now();
    while (!error && !work.ending && strcmp(state, "done")) {
        clock_sleep(SECOND);
        error = ask(node, "stage action=look\n", BOUND, &reply);
        if (!error && !find_text(&reply, "state", state, sizeof state))
            sim_fail("node %u: stage says: %s", node, reply.data);
        if (!faults_any() && sim_now() - began > BOUND)
            sim_fail("staging is not done after a minute: %s", reply.data);
    }
    work.staged = !strcmp(state, "done");
    str_fini(&reply);
    work.working--;
    return NULL;
}

/* ---- what is checked all the time ---- */

static struct {
    const struct net_world *world;
    uint64_t k;
    struct digest layout;
} turn_of[TURNS];

static void check_turn(const struct sim_node *n, const struct world_view *view)
{
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
    work.working--;
    return NULL;
}

/* ---- all of it ---- */

void work_begin(void)
{
    for (uint32_t i = 0; i < sim_options->readers; i++)
        start("reader", read_files, &sim_nodes[i % sim_options->nodes], i % sim_options->nodes);
    start_job(0);
    if (sim_random(2))
        start_job(1);
    if (sim_random(4))
        start("stager", stage, NULL, 0);
    start("monitor", monitor, NULL, 0);
}

static bool nobody_works(void *unused)
{
    (void)unused;
    return work.working == 0;
}

void work_end(void)
{
    work.ending = true;
    if (!sim_wait(nobody_works, NULL, sim_now() + BOUND + 10 * SECOND, "all that was begun"))
        sim_fail("%u of those that work do not come to an end", work.working);
    sim_log("%" PRIu64 " reads, %" PRIu64 " failed; %" PRIu64 " epochs planned, %" PRIu64 " not; %" PRIu64 " exchanges",
            work.reads, work.failed, work.plans, work.stale, work.exchanges);
}

void work_check_idle(void)
{
    uint64_t loaded = 0;
    bool ample = true;
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        struct sim_node *n = &sim_nodes[i];
        struct store_stats stats;
        store_stats(n->store, &stats);
        if (stats.parked)
            sim_fail("node %u: %" PRIu64 " reads are parked, and nobody waits", n->number, stats.parked);
        uint64_t began = sim_now(); /* what moves may still wait for a node that is silent */
        while (store_flush(n->store) == -EBUSY)
            if (sim_now() - began > BOUND)
                sim_fail("node %u: rooms are not given back within a minute", n->number);
        memory_check_idle(i);
        store_stats(n->store, &stats);
        loaded += stats.source_samples;
        ample &= n->ample;
    }
    if (!faults_any() && ample && work.staged && loaded != catalog_files(sim_dataset.catalog))
        sim_fail("%u files were opened %" PRIu64 " times at the source", catalog_files(sim_dataset.catalog), loaded);
}
