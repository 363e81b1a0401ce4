#include "tests/sim/node.h"

#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/control/control-private.h"
#include "fs/control/verbs.h"
#include "tests/lib/tap.h"
#include "tests/sim/bound.h"
#include "tests/sim/disk.h"
#include "tests/sim/faults.h"
#include "tests/sim/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_THREADS = 2, TURN_THREADS = 8, VERB_THREADS = 2, PEER_TIMEOUT_S = 5, RAM = 48 << 20, RAM_SMALL = 6 << 20 };

struct sim_node sim_nodes[NET_NODES];
const struct sim_options *sim_options;
struct dataset sim_dataset;

void node_init(uint32_t number, const char *directory)
{
    struct sim_node *n = &sim_nodes[number];
    *n = (struct sim_node){.number = number, .ram_bytes = RAM, .zstd = (int)sim_random(2)};
    if (sim_random(3) == 0)
        n->ssd_bytes = RAM;
    if (sim_random(4) == 0)
        n->ram_bytes = RAM_SMALL; /* a segment, and little more */
    n->ample = n->ram_bytes == RAM;
    n->groups = number ? sim_nodes[0].groups : sim_random(3) ? 1 : 1 + (uint32_t)sim_random(sim_options->nodes);
    snprintf(n->state, sizeof n->state, "%s/state-%u", directory, number);
    snprintf(n->ram, sizeof n->ram, "%s/ram-%u", directory, number);
    snprintf(n->ssd, sizeof n->ssd, "%s/ssd-%u", directory, number);
    snprintf(n->id, sizeof n->id, "%032x", number + 1);
    snprintf(n->host, sizeof n->host, "host-%u", number);
    snprintf(n->faults, sizeof n->faults, "file=%s/faults-%u", directory, number);
    if (dir_make(n->state, 0700) || dir_make(n->ram, 0700) || dir_make(n->ssd, 0700))
        bail_out("directories in %s", directory);
    n->mount = (struct mount_config){
        .source = sim_dataset.source,
        .mountpoint = n->host,
        .state = n->state,
        .ram_bytes = n->ram_bytes,
        .peer_timeout = PEER_TIMEOUT_S * SECOND,
        .decoded = DECODED_DEFAULT,
        .request_memory = REQUEST_MEMORY_DEFAULT,
        .exchange = true,
        .id = n->id,
    };
    for (int kind = 0; kind < REQUEST_KINDS; kind++) {
        TAILQ_INIT(&n->queue[kind].waiting);
        n->queue[kind].node = n;
    }
    TAILQ_INIT(&n->taken);
    n->clients = sim_process_new(number, "clients");
}

/* --- the server --- */

static void obey_world(void *user, enum world_command command, uint64_t token)
{
    struct sim_node *n = user;
    control_command(n->control, command, token);
}

static void tell_joined(void *user)
{
    control_joined(((struct sim_node *)user)->control);
}

static ssize_t give_blob(void *user, const struct blob_question *question, void *to, size_t room, uint64_t *length)
{
    return control_blob(((struct sim_node *)user)->control, question, to, room, length);
}

/* A server that does not start has said why, and ends. */
static void refuse(struct sim_node *n, int error)
{
    if (!faults_any())
        sim_fail("node %u: the server does not start: %s", n->number, strerror(-error));
    sim_log("the server of node %u does not start: %s", n->number, strerror(-error));
    bound_peers(sim_now() + 2 * SECOND); /* until the next one does */
    sim_process_kill(sim_process_self());
}

static int open_store(struct sim_node *n)
{
    struct store_config store = {
        .catalog = sim_dataset.catalog,
        .source = sim_dataset.root,
        .tier = {[TIER_RAM] = {.directory = n->ram_bytes ? n->ram : NULL, .capacity = n->ram_bytes},
                 [TIER_SSD] = {.directory = n->ssd_bytes ? n->ssd : NULL, .capacity = n->ssd_bytes}},
        .zstd_level = n->zstd,
        .source_threads = SIM_SOURCE_THREADS,
        .disk_callers = READ_THREADS,
        .faults = n->faults,
    };
    int error = store_open(&store, &n->store);
    return error ? error : peers_fill(n->peers, sim_dataset.catalog, n->store);
}

/* A courier brings the catalog, as fs/server/server-world.c has it. All nodes then use one in memory. */
static int install_catalog(void *user, const char *path, struct str *why)
{
    (void)why;
    struct sim_node *n = user;
    struct catalog *c;
    int error = catalog_open(path, &c);
    if (error || !digest_equal(catalog_versions(c), catalog_versions(sim_dataset.catalog)))
        sim_fail("node %u: a catalog that was sent is not that of the leader", n->number);
    catalog_close(c);
    error = open_store(n);
    if (!error)
        error = control_fill(n->control, sim_dataset.catalog, n->store, NULL);
    n->waits = error != 0;
    return error;
}

static void open_server(struct sim_node *n)
{
    struct peers_config peers = {
        .state = n->state,
        .id = n->id,
        .host = n->host,
        .peer_timeout = n->mount.peer_timeout * (bug_is_planted("patience") ? 2 : 1),
        .exchange = true,
        .mountpoint = n->host,
        .groups = n->groups,
        .restarted = n->generation > 1,
        .mark = &n->mark,
        .catalog = n->waits ? NULL : sim_dataset.catalog,
        .command = obey_world,
        .joined = tell_joined,
        .blob = give_blob,
        .install = install_catalog,
        .user = n,
    };
    int error = peers_create(&peers, &n->peers);
    if (!error && !n->waits)
        error = open_store(n);
    if (error)
        refuse(n, error);
}

static void open_control(struct sim_node *n)
{
    struct control_config control = {
        .mount = &n->mount,
        .catalog = n->waits ? NULL : sim_dataset.catalog,
        .store = n->store,
        .peers = n->peers,
        .generation = n->generation,
        .staging = &n->staging,
    };
    int error = control_create(&control, &n->control);
    uint64_t round = atomic_load(&n->staging.round);
    if (!error && round) /* as fs/server/server.c does it */
        control_command(n->control, WORLD_STAGE, round);
    if (!error)
        error = peers_start(n->peers);
    if (error)
        refuse(n, error);
}

struct serving {
    struct store_read read; /* first */
    struct sim_node *node;
    struct sim_request *request;
};

static void end_request(struct sim_node *n, struct sim_request *r, int error)
{
    r->error = error;
    r->over = true;
    TAILQ_REMOVE(&n->taken, r, next);
    sim_tell(r);
}

static void read_done(struct store_read *read, int error)
{
    struct serving *s = (struct serving *)read;
    struct sim_request *r = s->request;
    if (!error) {
        r->right = dataset_matches(&sim_dataset, &r->span, &read->answer);
        r->place = read->place;
        if (!bug_is_planted("leak"))
            answer_release(&read->answer);
    }
    end_request(s->node, r, error);
    free(s);
}

static bool has_request(void *queue)
{
    struct sim_queue *q = queue;
    return q->node->stopping || !TAILQ_EMPTY(&q->waiting);
}

static struct sim_request *take_request(struct sim_queue *q)
{
    struct sim_request *r = TAILQ_FIRST(&q->waiting);
    if (r) {
        TAILQ_REMOVE(&q->waiting, r, next);
        TAILQ_INSERT_TAIL(&q->node->taken, r, next);
        r->taken = true;
    }
    return r;
}

static void *serve_reads(void *argument)
{
    struct sim_queue *q = argument;
    struct sim_node *n = q->node;
    while (!n->stopping) {
        sim_await(has_request, q, q, "a READ");
        struct sim_request *r = take_request(q);
        if (!r)
            continue;
        struct serving *s = calloc(1, sizeof *s);
        if (!s)
            bail_out("no memory for a read");
        *s = (struct serving){.read = {.span = r->span, .fed = r->fed && !bug_is_planted("feed"), .done = read_done},
                              .node = n,
                              .request = r};
        int error = store_read(n->store, &s->read);
        if (error != -EINPROGRESS)
            read_done(&s->read, error);
    }
    return NULL;
}

static void *serve_verbs(void *argument)
{
    struct sim_queue *q = argument;
    struct sim_node *n = q->node;
    while (!n->stopping) {
        sim_await(has_request, q, q, "a request");
        struct sim_request *r = take_request(q);
        if (!r)
            continue;
        struct str why = STR_INIT;
        struct asker asker = {.reply = &r->reply, .why = &why};
        str_clear(&r->reply);
        int error = verbs_run(n->control, r->text, strlen(r->text), &asker);
        if (error)
            str_add(&r->reply, why.data, why.length);
        str_fini(&why);
        end_request(n, r, error);
    }
    return NULL;
}

static bool is_stopping(void *node)
{
    return ((struct sim_node *)node)->stopping;
}

static void *server_main(void *argument)
{
    struct sim_node *n = argument;
    pthread_t thread[READ_THREADS + TURN_THREADS + VERB_THREADS];
    open_server(n);
    open_control(n);
    int count = threads_start(thread, READ_THREADS, "read", serve_reads, &n->queue[REQUEST_READ]);
    count += threads_start(thread + count, TURN_THREADS, "turn", serve_verbs, &n->queue[REQUEST_TURN]);
    count += threads_start(thread + count, VERB_THREADS, "verb", serve_verbs, &n->queue[REQUEST_OTHER]);
    n->serving = true;
    n->serving_since = sim_now();
    node_goes_on(n);
    sim_log("server %u of node %u serves", n->generation, n->number);
    sim_await(is_stopping, n, n, "the end of the mount");
    threads_join(thread, count);
    peers_stop(n->peers);
    control_destroy(n->control);
    store_close(n->store);
    peers_destroy(n->peers);
    memory_check_ended(n->number);
    n->serving = false;
    n->ended = true;
    return NULL;
}

void node_start_server(struct sim_node *n)
{
    struct sim_process *self = sim_process_self();
    pthread_t thread;
    n->generation++;
    n->stopping = n->ended = false;
    n->server = sim_process_new(n->number, "server");
    memory_begin(n->number);
    sim_process_enter(n->server);
    if (thread_create(&thread, "main", server_main, n))
        bail_out("a thread for a server");
    sim_process_enter(self);
    pthread_detach(thread);
}

void node_goes_on(struct sim_node *n)
{
    n->stopped += n->stopped_at ? sim_now() - n->stopped_at : 0;
    n->stopped_at = 0;
}

void node_lose_server(struct sim_node *n)
{
    struct sim_request *r;
    n->losses += n->serving;
    n->serving = false;
    node_goes_on(n);
    n->stopped_at = sim_now();
    disk_lose(n->server);
    while ((r = TAILQ_FIRST(&n->taken))) {
        TAILQ_REMOVE(&n->taken, r, next);
        if (r->text) { /* a handle does not outlive its server */
            r->error = -ESTALE;
            r->over = true;
            sim_tell(r);
        } else {
            r->taken = false;
            TAILQ_INSERT_TAIL(&n->queue[REQUEST_READ].waiting, r, next);
        }
    }
    n->store = NULL;
    n->peers = NULL;
    n->control = NULL;
}

bool node_serves(void *node)
{
    return ((struct sim_node *)node)->serving;
}

static bool has_ended(void *node)
{
    return ((struct sim_node *)node)->ended;
}

void node_stop(struct sim_node *n)
{
    n->stopping = true;
    sim_tell(n);
    for (int kind = 0; kind < REQUEST_KINDS; kind++)
        sim_tell(&n->queue[kind]);
    if (!sim_wait(has_ended, n, sim_now() + 60 * SECOND, "the end of a server"))
        sim_fail("node %u: its server does not end within a minute", n->number);
}

/* --- requests --- */

static bool is_over(void *request)
{
    return ((struct sim_request *)request)->over;
}

static enum request_kind kind_of(const struct sim_request *r)
{
    if (!r->text)
        return REQUEST_READ;
    return verbs_class(r->text, strlen(r->text)) == WORK_TURN ? REQUEST_TURN : REQUEST_OTHER;
}

void node_begin(struct sim_node *n, struct sim_request *r)
{
    r->over = r->taken = false;
    r->began = sim_now();
    r->losses = n->losses;
    r->stopped = n->stopped + (n->stopped_at ? r->began - n->stopped_at : 0);
    TAILQ_INSERT_TAIL(&n->queue[kind_of(r)].waiting, r, next);
    sim_tell(&n->queue[kind_of(r)]);
}

void node_await(struct sim_request *r)
{
    sim_await(is_over, r, r, r->text ? r->text : "its READ");
}

void node_ask(struct sim_node *n, struct sim_request *r)
{
    node_begin(n, r);
    node_await(r);
}
