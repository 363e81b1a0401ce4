#include "tests/sim/work.h"

#include "fs/base/json.h"
#include "fs/base/thread.h"
#include "tests/lib/tap.h"
#include "tests/sim/bound.h"
#include "tests/sim/rewrite.h"
#include "tests/sim/work-inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { THINK_MS = 800, BURST = 40, BURST_AHEAD = 8, LARGE_BYTES = 4 << 20, CROWDS = 8, CROWD = 24, CROWD_BYTES = 9000 };

struct work work;

void work_start(const char *name, void *(*body)(void *), void *argument, uint32_t node)
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

void *work_done(void)
{
    work.working--;
    return NULL;
}

bool work_rests(uint64_t most)
{
    if (!work.ending)
        clock_sleep(1 + sim_random(most));
    return !work.ending;
}

static uint64_t stopped_so_far(const struct sim_node *n)
{
    return n->stopped + (n->stopped_at ? sim_now() - n->stopped_at : 0);
}

/* For as long as its server is stopped, nobody can answer. */
void check_time(const struct sim_node *n, const struct sim_request *r, uint64_t bound)
{
    if (sim_now() - r->began > bound + stopped_so_far(n) - r->stopped)
        sim_fail("node %u: %s took %" PRIu64 " ms", n->number, r->text ? r->text : "a read",
                 (sim_now() - r->began) / MILLISECOND);
}

/* --- requests of the control mount --- */

int work_ask(const struct question *q, struct str *reply)
{
    struct sim_request r = {.text = q->text, .reply = STR_INIT};
    node_ask(&sim_nodes[q->node], &r);
    check_time(&sim_nodes[q->node], &r, q->bound ? q->bound : bound_of(&sim_nodes[q->node], &r));
    str_clear(reply);
    str_add(reply, r.reply.data ? r.reply.data : "", r.reply.length);
    if (r.error)
        sim_log("node %u: %s: %s: %s", q->node, q->text, strerror(-r.error), r.reply.data ? r.reply.data : "");
    if (r.error && r.error != q->tolerated && !faults_any())
        sim_fail("node %u: %s: %s: %s", q->node, q->text, strerror(-r.error), r.reply.data ? r.reply.data : "");
    str_fini(&r.reply);
    return r.error;
}

bool work_find(const struct str *json, const char *key, char *to, size_t room)
{
    const char *value;
    long n = json_find(json->data, json->length, key, &value);
    if (n < 3 || (size_t)n > room || value[0] != '"')
        return false;
    snprintf(to, room, "%.*s", (int)n - 2, value + 1);
    return true;
}

/* --- readers --- */

void check_read(const struct sim_node *n, const struct sim_request *r)
{
    check_time(n, r, r->fed ? BOUND : bound_of(n, r));
    work.reads++;
    if (!r->error && !r->right)
        sim_fail("node %u: file %u at %" PRIu64 ", %u bytes from %s: wrong bytes", n->number, r->span.file,
                 r->span.offset, r->span.length, place_names[r->place]);
    bool source =
        (r->error == -EIO && n->fails_until >= r->began) || (r->error == -ESTALE && n->changes_until >= r->began);
    bool memory = r->error == -ENOMEM && n->lack_until >= r->began;
    bool stale = r->error == -ESTALE && rewrite_has(r->span.file);
    effects[EFFECT_STALE] += stale;
    if (r->error && !source && !memory && !stale)
        sim_fail("node %u: file %u at %" PRIu64 ", %u bytes: %s, and its source is well", n->number, r->span.file,
                 r->span.offset, r->span.length, strerror(-r->error));
    work.failed += r->error != 0;
}

static bool is_read(uint32_t file)
{
    uint64_t size = dataset_size(&sim_dataset, file);
    return size > 0 && (work.striped || size <= EXTENT_BYTES);
}

/* One of ten is of a file that is kept by its values, and not whole. */
static uint32_t random_file(void)
{
    uint32_t files = catalog_files(sim_dataset.catalog), file = (uint32_t)sim_random(files);
    for (bool large = sim_options->large && sim_random(10) == 0;; file = (file + 1) % files)
        if (is_read(file) && (!large || dataset_size(&sim_dataset, file) > LARGE_BYTES))
            return file;
}

/* Many small reads at once, which other nodes are asked for together. */
static void read_crowd(struct sim_node *n, uint64_t *random)
{
    struct sim_request r[CROWD] = {0};
    work.crowds++;
    work.crowding++;
    bound_reads(CROWD);
    for (int i = 0; i < CROWD; i++) {
        r[i].span = dataset_random_span(&sim_dataset, random_file(), random);
        if (r[i].span.length > CROWD_BYTES)
            r[i].span.length = CROWD_BYTES;
        node_begin(n, &r[i]);
    }
    for (int i = 0; i < CROWD; i++) {
        node_await(&r[i]);
        check_read(n, &r[i]);
    }
    bound_reads(-CROWD);
    work.crowding--;
}

static void *read_files(void *argument)
{
    struct sim_node *n = argument;
    uint64_t random = sim_random(UINT64_MAX);
    while (work_rests(2 * THINK_MS * MILLISECOND)) {
        if (sim_random(CROWDS) == 0)
            read_crowd(n, &random);
        struct sim_request r = {.span = dataset_random_span(&sim_dataset, random_file(), &random)};
        node_ask(n, &r);
        check_read(n, &r);
    }
    return work_done();
}

/* --- the feeder --- */

static uint32_t count_loaded(const struct sim_request *r, uint32_t many)
{
    uint32_t loaded = 0;
    for (uint32_t i = 0; i < many; i++)
        loaded += r[i].over && !r[i].error && r[i].place == PLACE_SOURCE;
    return loaded;
}

static struct sim_request burst_request(uint32_t file, bool fed)
{
    uint64_t size = dataset_size(&sim_dataset, file);
    return (struct sim_request){.span = {file, size < VALUE_BYTES ? (uint32_t)size : VALUE_BYTES, 0}, .fed = fed};
}

/* Much is asked for ahead of a loader, whose own read does not wait until all of that is loaded. It may wait for a
 * crowd of other readers, who also load what is fed. */
static void read_ahead(struct sim_node *n, struct sim_request *fed)
{
    uint32_t files = catalog_files(sim_dataset.catalog), first = (uint32_t)sim_random(files), many = 0;
    for (uint32_t i = 1; i < files && many < BURST; i++)
        if (is_read((first + i) % files)) {
            fed[many] = burst_request((first + i) % files, true);
            node_begin(n, &fed[many++]);
        }
    clock_sleep(MILLISECOND);
    struct sim_request r = burst_request(is_read(first) ? first : 0, false);
    uint64_t crowds = work.crowds;
    bool crowded = work.crowding > 0;
    uint32_t before = count_loaded(fed, many);
    node_ask(n, &r);
    uint32_t meanwhile = count_loaded(fed, many) - before;
    crowded |= work.crowds != crowds;
    /* In the end the source is no longer slow, but a call that has begun before is. */
    if (!faults_any() && !faults_ended() && !crowded && r.place == PLACE_SOURCE && meanwhile > BURST_AHEAD)
        sim_fail("node %u: %u files were fed before a loader's own read of file %u", n->number, meanwhile, first);
    check_read(n, &r);
    for (uint32_t i = 0; i < many; i++) {
        node_await(&fed[i]);
        check_read(n, &fed[i]);
    }
    work.bursts++;
}

static void *feed_reads(void *argument)
{
    static struct sim_request fed[BURST];
    do
        read_ahead(argument, fed);
    while (work_rests(10 * SECOND) && work_rests(10 * SECOND));
    return work_done();
}

/* --- staging --- */

static void *stage(void *unused)
{
    (void)unused;
    struct str reply = STR_INIT;
    char state[16] = "";
    clock_sleep(1 + sim_random(5 * SECOND));
    struct question q = {(uint32_t)sim_random(sim_options->nodes), "stage\n", 0, 0};
    int error = work_ask(&q, &reply);
    uint64_t began = sim_now();
    q.text = "stage action=look\n";
    while (!error && !work.ending && strcmp(state, "done")) {
        clock_sleep(SECOND);
        error = work_ask(&q, &reply);
        if (!error && !work_find(&reply, "state", state, sizeof state))
            sim_fail("node %u: stage says: %s", q.node, reply.data);
        if (!faults_any() && sim_now() - began > BOUND)
            sim_fail("staging is not done after a minute: %s", reply.data);
    }
    work.staged = !strcmp(state, "done");
    str_fini(&reply);
    return work_done();
}

/* --- all of it --- */

void work_begin(void)
{
    work.striped = sim_random(4) == 0;
    work.early = !nodes_joined(); /* until then an owner cannot be asked, and its samples are read from the source */
    for (uint32_t i = 0; i < sim_options->readers; i++)
        work_start("reader", read_files, &sim_nodes[i % sim_options->nodes], i % sim_options->nodes);
    uint32_t fed = (uint32_t)sim_random(2 * sim_options->nodes);
    work.slow = fed < sim_options->nodes;
    if (work.slow) {
        bound_fed();
        faults_slow(&sim_nodes[fed], 100 + sim_random(900)); /* else what is fed would be there at once */
        work_start("feeder", feed_reads, &sim_nodes[fed], fed);
    }
    jobs_begin();
    lists_begin();
    if (sim_random(4))
        work_start("stager", stage, NULL, 0);
    checks_begin();
}

static bool nobody_works(void *unused)
{
    (void)unused;
    return work.working == 0;
}

void work_end(void)
{
    work.ending = true;
    if (!sim_wait(nobody_works, NULL, sim_now() + 2 * BOUND, "all that was begun"))
        sim_fail("%u of those that work do not come to an end", work.working);
    sim_log("%" PRIu64 " reads, %" PRIu64 " failed; %" PRIu64 " epochs planned, %" PRIu64 " not; %" PRIu64
            " turns, %" PRIu64 " lists, %" PRIu64 " bursts",
            work.reads, work.failed, work.plans, work.stale, work.turns, work.lists, work.bursts);
}
