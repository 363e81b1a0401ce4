/* What the control mount says of a world, against one that is made up: its status, nodes, owners, and how all stage. */
#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/lists.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/catalog/scanner.h"
#include "fs/world/extents.h"
#include "fs/world/layout.h"
#include "fs/world/peers.h"
#include "fs/world/world.h"
#include "tests/fs/control/fake-store.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the peers, as they are wanted --- */

enum { NODES = 3 };

static struct world_view world;
static struct peer_view peer[NODES];
static struct layout *layout, *layout_after; /* of three files: owned by 2, none, 1; and by 1, none, 2 */
static int views, told, tell_error;
static enum world_command last_command;
static uint64_t last_token;

int peers_view(struct peers *peers, struct world_view *view)
{
    (void)peers;
    views++;
    *view = world;
    view->peer = peer;
    view->hold = &world;
    return 0;
}

/* Node 0 has what this node has, node 2 cannot be asked. The first `other_answers` of node 0 have another digest. */
static struct control *lists_of;
static int other_answers;
static unsigned char other_digest;

int peers_blob(struct peers *peers, uint32_t node, uint64_t key, uint32_t piece, void *to, uint64_t *length)
{
    const struct blob_question question = {1, key & ~UINT64_C(1), (uint64_t)piece * BLOB_PIECE};
    (void)peers;
    if (node != 0 || !lists_of)
        return -EHOSTUNREACH;
    if (control_blob(lists_of, &question, to, BLOB_PIECE, length) < 0)
        return -ENOENT;
    if (question.key == 0 && *length > 0 && other_answers > 0) {
        other_answers--;
        memset(&((struct samples_record *)to)->digest, other_digest, sizeof(struct digest));
    }
    return 0;
}

void peers_view_release(struct world_view *view)
{
    views--;
    view->hold = NULL;
}

int peers_command(struct peers *peers, enum world_command command, uint64_t token)
{
    (void)peers;
    told++;
    last_command = command;
    last_token = token;
    return tell_error;
}

static int asked, turn_error; /* turn_error: 0: the world turns */
static uint64_t asked_seconds;
static struct turn_record next_turn;

int peers_turn(struct peers *peers, const struct turn *turn, const struct turn_patience *patience,
               struct turn_record *record, struct str *trouble)
{
    (void)peers;
    asked++;
    asked_seconds = (patience->deadline - clock_now() + SECOND / 2) / SECOND;
    if (turn_error) {
        str_adds(trouble, "told why");
        return turn_error;
    }
    if (!world.last.k || !turn_same(&world.last.turn, turn)) {
        next_turn.turn = *turn;
        next_turn.k = world.last.k + 1;
        world.last = next_turn;
    }
    *record = world.last;
    return 0;
}

bool peers_await_courier(struct peers *peers, bool (*gave_up)(void *user), void *user)
{
    (void)peers, (void)gave_up, (void)user;
    return false;
}

int peers_layout(struct peers *peers, const struct digest *digest, struct layout **found)
{
    (void)peers;
    struct layout *known = layout_is(layout, digest) ? layout : layout_is(layout_after, digest) ? layout_after : NULL;
    if (known)
        *found = layout_get(known);
    return known ? 0 : -ENOENT;
}

/* --- a mount in a world --- */

static struct catalog *catalog;
static struct mount_config mount;

static void make_file(const char *path, size_t n)
{
    char bytes[200] = "";
    if (file_write_atomic(AT_FDCWD, path, bytes, n, 0644))
        bail_out("cannot write %s", path);
}

static void make_catalog(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct scan_options options = {.threads = 1, .rescan = RESCAN_ALWAYS};
    struct scan_progress result;
    mkdir(test_path("source"), 0755);
    make_file(test_path("source/a"), 100);
    make_file(test_path("source/b"), 150);
    make_file(test_path("source/c"), 50);
    CLEANUP_CLOSE int fd = open(test_path("source"), O_RDONLY | O_DIRECTORY);
    if (scan_source(fd, test_path("catalog"), &options, &catalog, &why, &result) != 0)
        bail_out("scan: %s", why.data);
}

/* The second file finds no room. */
static void make_layout(void)
{
    static const struct message_member member[NODES] = {
        {{"00000000000000000000000000000000", "alpha", 0}, {.room = 0}},
        {{"11111111111111111111111111111111", "beta", 120}, {.room = 120}},
        {{"22222222222222222222222222222222", "ga\nmma", 120}, {.room = 120}},
    };
    static const uint16_t holder[] = {2, NO_OWNER, 1}, holder_after[] = {1, NO_OWNER, 2};
    struct extents *extents;
    if (extents_create(catalog, &extents))
        bail_out("no memory");
    struct layout_input input = {catalog, extents, NODES, 1, member, holder};
    struct layout_input after = {catalog, extents, NODES, 1, member, holder_after};
    if (layout_compute(&input, &layout) || layout_compute(&after, &layout_after))
        bail_out("no layout");
    extents_destroy(extents);
    for (int i = 0; i < NODES; i++)
        peer[i].node = *layout_node(layout, (uint32_t)i);
}

static void reset(void)
{
    fake.progress = (struct stage_progress){.state = STAGE_IDLE};
    fake.start_error = fake.stops = told = tell_error = 0;
    asked = turn_error = 0;
    last_command = 0;
    for (int i = 0; i < NODES; i++) {
        peer[i].state = PEER_GOOD;
        peer[i].news = (struct node_news){.held = 100 + (uint64_t)i, .capacity = 2000, .reads = {5, 0, 6, 0}};
    }
    world = (struct world_view){
        .state = WORLD_JOINED,
        .nodes = NODES,
        .me = 1,
        .groups = 1,
        .layout = *layout_digest(layout),
        .known = true,
        .courier = 4711,
        .timeouts = 8,
        .bad = 9,
        .owners = layout,
        .settled = UINT64_MAX, /* which extents have no owner */
    };
}

static struct control *create(bool filled)
{
    struct control_config config = {
        .mount = &mount,
        .catalog = filled ? catalog : NULL,
        .store = filled ? (struct store *)&fake : NULL,
        .peers = (struct peers *)&world,
        .generation = 1,
    };
    struct control *control = NULL;
    int error = control_create(&config, &control);
    if (error)
        bail_out("control_create: %s", strerror(-error));
    return control;
}

/* --- looking --- */

static void check(const struct str *json, const char *path, const char *expected)
{
    const char *value = "";
    long n = json_find(json->data, json->length, path, &value);
    CLEANUP_STR struct str text = STR_INIT;
    str_add(&text, value, n > 0 ? (size_t)n : 0);
    is_str(text.data, expected, "%s", path);
}

static void get_status(struct control *control, struct str *json)
{
    str_clear(json);
    is_int(control_status(control, json), 0, "status");
}

static void test_joined(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT, quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    reset();
    get_status(control, &json);
    str_addf(&quoted, "\"%s\"", digest_format(layout_digest(layout), digest));
    check(&json, "node", "1");
    check(&json, "nodes", "3");
    check(&json, "state", "\"joined\"");
    check(&json, "layout", quoted.data);
    check(&json, "pids.courier", "4711");
    check(&json, "world.0.host", "\"alpha\"");
    check(&json, "world.0.state", "\"joined\"");
    check(&json, "world.0.held", "100");
    check(&json, "world.0.capacity", "2000");
    check(&json, "world.0.reads.peer", "6");
    check(&json, "world.1.id", "\"my id\"");
    check(&json, "world.1.held", "10");
    check(&json, "world.1.reads.source", "4");
    check(&json, "world.3", "");
    check(&json, "lost.bytes", "0");
    check(&json, "lost.rejoin", "null");
    check(&json, "peers.timeouts", "8");
    check(&json, "peers.bad", "9");
    check(&json, "health", "[]");
    peer[2].state = PEER_SUSPECT;
    get_status(control, &json);
    check(&json, "world.2.state", "\"suspect\"");
    check(&json, "health.0",
          "\"node 2 (ga\\\\x0amma) did not answer in time: for a while what it owns is read from "
          "the source\"");
}

static void test_degraded(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT;
    reset();
    world.state = WORLD_DEGRADED;
    world.courier = 0;
    world.lost_bytes = 75;
    peer[0].state = peer[2].state = PEER_LOST;
    get_status(control, &json);
    check(&json, "state", "\"degraded\"");
    check(&json, "pids.courier", "null");
    check(&json, "world.0.state", "\"lost\"");
    check(&json, "world.1.state", "\"degraded\"");
    check(&json, "lost.nodes", "2");
    check(&json, "lost.bytes", "75");
    check(&json, "lost.percent", "25.0");
    CLEANUP_STR struct str rejoin = STR_INIT, sentence = STR_INIT;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    str_addf(&rejoin, "\"mpirun --allow-run-as-root -n 3 --host 'alpha,%s,ga\\nmma' dealfs join '%s'\"", host,
             mount.mountpoint);
    check(&json, "lost.rejoin", rejoin.data);
    str_addf(&sentence,
             "\"2 of 3 nodes cannot be asked: what they own, 75 B (25.0%% of the dataset), is read from the source; to "
             "form a world again: %.*s\"",
             (int)rejoin.length - 2, rejoin.data + 1);
    check(&json, "health.0", sentence.data);
    world.state = WORLD_JOINED;
    peer[0].state = PEER_GOOD;
    get_status(control, &json);
    check(&json, "state", "\"degraded\"");
    check(&json, "world.0.state", "\"joined\"");
    check(&json, "lost.nodes", "1");
    world.lost_bytes = 100000;
    get_status(control, &json);
    check(&json, "lost.percent", "100.0");
}

static void test_files(struct control *control)
{
    CLEANUP_STR struct str nodes = STR_INIT, node = STR_INIT, metrics = STR_INIT;
    reset();
    peer[2].state = PEER_LOST;
    is_int(control_nodes(control, &nodes), 0, "nodes");
    CLEANUP_STR struct str expected = STR_INIT;
    str_adds(&expected, "0\t00000000000000000000000000000000\talpha\tjoined\t2000\t100\n");
    ok(strncmp(nodes.data, expected.data, expected.length) == 0, "another node's line");
    ok(strstr(nodes.data, "\n1\tmy id\t") && strstr(nodes.data, "\tdegraded\t1000\t10\n"), "this node's");
    ok(strstr(nodes.data, "\tga\\x0amma\tlost\t2000\t102\n"), "one that is lost, with its odd name on one line");
    is_int(control_node(control, &node), 0, "node");
    is_str(node.data, "1\n", "this node's number");
    is_int(control_metrics(control, &metrics), 0, "metrics");
    ok(strstr(metrics.data, "\ndealfs_nodes 3\n") && strstr(metrics.data, "\ndealfs_nodes_gone 1\n"), "nodes");
    ok(strstr(metrics.data, "\ndealfs_state{state=\"alone\"} 0\ndealfs_state{state=\"joined\"} 0\n"), "the state");
    ok(strstr(metrics.data, "\ndealfs_peer_timeouts_total 8\n"), "timeouts");
    ok(strstr(metrics.data, "\ndealfs_peer_bad_replies_total 9\n"), "bad replies");
    ok(strstr(metrics.data, "\ndealfs_reads_total{from=\"peer\"} 3\n"), "reads from peers");
}

/* --- requests --- */

static int run(struct control *control, const char *request, struct str *reply)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct asker asker = {0};
    str_clear(reply);
    int error = verbs_run(control, request, strlen(request), &asker, reply, &why);
    if (error)
        str_add(reply, why.data, why.length);
    return error;
}

static void test_where(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, expected = STR_INIT;
    reset();
    is_int(run(control, "where\na\nb\nc\nd\n", &reply), 0, "where");
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t owner = layout_owner(layout, 0, i);
        str_addf(&expected, "%u\t", i);
        if (owner == NO_OWNER)
            str_adds(&expected, "-");
        else
            str_addf(&expected, "%u", owner);
        str_addf(&expected, "\t%s\t%c\n", i == 0 ? "ram" : "-", 'a' + (int)i);
    }
    str_adds(&expected, "-\t-\t-\td\n");
    is_str(reply.data, expected.data, "owners are those of the layout");
    ok(strstr(expected.data, "\t2\t") && strstr(expected.data, "\t1\t") && strstr(expected.data, "\n1\t-\t"),
       "two have one, one has none");
    world.state = WORLD_DEGRADED;
    is_int(run(control, "where\na\nb\nc\nd\n", &reply), 0, "where in a world that is gone");
    is_str(reply.data, expected.data, "says the same");
}

static void hear(int node, uint32_t state, uint64_t bytes)
{
    peer[node].news.stage_round = fake.progress.round;
    peer[node].news.staging = state;
    peer[node].news.stage_bytes = peer[node].news.stage_kept = bytes;
    peer[node].news.stage_total = 100;
    peer[node].news.stage_files = 1;
}

static void look(struct control *control, struct str *reply)
{
    run(control, "stage action=look\n", reply);
}

static void test_stage(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    is_int(run(control, "stage action=look\n", &reply), 0, "look, before anything");
    check(&reply, "state", "\"idle\"");
    check(&reply, "nodes", "1");
    uint64_t before = clock_realtime();
    is_int(run(control, "stage\n", &reply), 0, "stage");
    is_uint(told, 1, "the others are told");
    ok(last_command == WORLD_STAGE && last_token >= before && last_token == fake.progress.round,
       "the same round as here");
    check(&reply, "state", "\"running\"");
    check(&reply, "nodes", "3");
    check(&reply, "waiting_for", "2");
}

/* Goes on from there: this node is done, the others are heard of. */
static void test_stage_sums(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake.progress =
        (struct stage_progress){.state = STAGE_DONE, .bytes = 50, .bytes_total = 60, .files = 7, .round = last_token};
    peer[0].news.staging = peer[2].news.staging = STAGE_DONE; /* of an earlier one */
    look(control, &reply);
    check(&reply, "state", "\"running\"");
    hear(0, STAGE_RUNNING, 30);
    hear(2, STAGE_DONE, 100);
    look(control, &reply);
    check(&reply, "state", "\"running\"");
    check(&reply, "waiting_for", "0");
    check(&reply, "bytes", "180");
    check(&reply, "bytes_total", "260");
    check(&reply, "kept", "130");
    check(&reply, "files", "9");
    hear(0, STAGE_DONE, 100);
    look(control, &reply);
    check(&reply, "state", "\"done\"");
    is_uint(told, 1, "nobody was told again");
}

static void test_stage_ends(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    hear(2, STAGE_STOPPED, 5);
    look(control, &reply);
    check(&reply, "state", "\"stopped\"");
    hear(2, STAGE_IDLE, 0); /* restarted since */
    look(control, &reply);
    check(&reply, "state", "\"stopped\"");
    peer[2].state = PEER_LOST;
    look(control, &reply);
    check(&reply, "state", "\"done\"");
    check(&reply, "nodes", "2");
    peer[0].news.stage_failed = 3;
    look(control, &reply);
    check(&reply, "failed", "3");
    check(&reply, "error", "\"see `dealfs status` on alpha\"");
    hear(0, 77, 0);
    look(control, &reply);
    check(&reply, "state", "\"failed\"");
}

static void test_stage_round(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    uint64_t round = fake.progress.round =
        (clock_realtime() + UINT64_C(3600000000000)) & ~UINT64_C(1); /* by a node with another clock */
    run(control, "stage\n", &reply);
    ok(fake.progress.round > round, "a new round is greater than all before");
}

/* All are done, and one file has no owner: node 0 has that dealt first. */
static void test_deal(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    run(control, "stage\n", &reply);
    fake.progress = (struct stage_progress){.state = STAGE_DONE, .round = last_token};
    hear(0, STAGE_DONE, 100);
    hear(2, STAGE_DONE, 100);
    world.settled = last_token - 1;
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"running\"");
    check(&reply, "waiting_for", "0");
    peer[0].state = PEER_SUSPECT;
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"done\"");
    peer[0].state = PEER_GOOD;
    world.state = WORLD_DEGRADED;
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"done\"");
    world.state = WORLD_JOINED;
    world.settled = last_token;
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"done\"");
    world.turning = true;
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"running\"");
    world.turning = false;
    peer[0].news.stage_round = last_token - 1; /* it has not turned yet: what it had before counts */
    run(control, "stage action=look\n", &reply);
    check(&reply, "state", "\"running\"");
    check(&reply, "waiting_for", "1");
    check(&reply, "bytes", "200");
}

/* What this node planned alone is still known by its digest once the world has more nodes than the plan has ranks. */
static void test_digest_after_join(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, request = STR_INIT;
    const char *digest;
    reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    is_int(run(control, "plan epoch=7 ranks=1 batch=1 reply=summary\n", &reply), 0, "planned before there is a world");
    long n = json_find(reply.data, reply.length, "digest", &digest);
    str_addf(&request, "plan epoch=7 ranks=1 batch=1 rank=0 digest=%.*s\n", (int)n - 2, digest + 1);
    reset();
    is_int(run(control, request.data, &reply), 0, "asked for by its digest in a world of three nodes");
    str_addf(&request, "plan epoch=7 ranks=1 batch=1 rank=0 feed=yes digest=%.*s\n", (int)n - 2, digest + 1);
    is_int(run(control, strchr(request.data, '\n') + 1, &reply), 0, "and to be read ahead");
    is_str(reply.data, "0\n1\n2\n", "the list is the same");
}

/* --- any numbers --- */

static const char *one_of(const char *const *words, uint64_t *random)
{
    size_t n = 0;
    while (words[n])
        n++;
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return words[(*random >> 33) % n];
}

/* The keys of a plan, which may go together or not. */
static void add_any_request(struct str *request, uint64_t *random)
{
    static const char *const ranks[] = {"0", "1", "2", "3", "3", "4", "6", "9", "1000", "1048577", NULL},
                             *const numbers[] = {"0",
                                                 "1",
                                                 "2",
                                                 "3",
                                                 "7",
                                                 "1073741824",
                                                 "4294967295",
                                                 "4294967296",
                                                 "9223372036854775808",
                                                 "18446744073709551615",
                                                 "-1",
                                                 NULL},
                             *const parts[] = {"1", "1", "1.5", "2", "1000", "1001", "0.5", NULL},
                             *const keys[] = {" skip=", " count=", " seed=", " echo_buffer=", " rank=", NULL},
                             *const words[] = {"",
                                               " mode=local",
                                               " mode=regular",
                                               " tail=drop",
                                               " tail=short",
                                               " echo_at=batch",
                                               " order=natural",
                                               " feed=yes",
                                               " nodes=0,0,0",
                                               " nodes=2",
                                               " under=a",
                                               NULL};
    str_addf(request, "plan epoch=%s ranks=%s batch=%s", one_of(numbers, random), one_of(ranks, random),
             one_of(numbers, random));
    str_adds(request, one_of(words, random));
    if (*random >> 40 & 1)
        return;
    str_adds(request, one_of(words, random));
    const char *key = one_of(keys, random);
    str_addf(request, "%s%s", key, one_of(numbers, random));
    str_addf(request, " echo=%s", one_of(parts, random));
}

/* Nothing that is asked ends the server, also when the world changes between requests; what fails has a reason. */
static void test_any_numbers(struct control *control)
{
    uint64_t random = 1, answered = 0, silent = 0;
    for (int i = 0; i < 1500; i++) {
        CLEANUP_STR struct str any = STR_INIT, request = STR_INIT, reply = STR_INIT;
        const char *digest;
        add_any_request(&any, &random);
        for (int then = 0; then < 2; then++) { /* then once more, by the digest, in another world */
            reset();
            if ((random >> 41 & 1) != (uint64_t)then)
                world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
            str_clear(&request);
            str_adds(&request, any.data);
            str_adds(&request, then ? " rank=0\n" : " reply=summary\n");
            int error = run(control, request.data, &reply);
            answered += error == 0;
            silent += error != 0 && reply.length == 0;
            if (error || then)
                break;
            if (json_find(reply.data, reply.length, "digest", &digest) == DIGEST_TEXT + 1)
                str_addf(&any, " digest=%.*s", DIGEST_TEXT - 1, digest + 1);
        }
    }
    ok(answered > 100, "%d plans of any numbers are answered", (int)answered);
    is_uint(silent, 0, "the others with a reason");
}

static bool no_memory; /* for what the nodes tell each other */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    return no_memory && n >= BLOB_PIECE ? NULL : __real_malloc(n);
}

/* A list that is put is on all nodes, or those that lack it are named. */
static void test_lists(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    lists_of = control;
    peer[2].state = PEER_LOST;
    is_int(run(control, "samples name=mine\nb\na\n", &reply), -EHOSTUNREACH, "a list, where a node is lost");
    ok(strstr(reply.data, "not yet: node 2 (ga\\x0amma)"), "the node is named: %s", reply.data);
    is_int(run(control, "plan epoch=1 ranks=3 batch=1 samples=mine rank=0\n", &reply), 0, "it is there all the same");
    other_answers = 3, other_digest = 0;
    run(control, "samples name=mine\nb\na\n", &reply);
    is_int(other_answers, 0, "a node with another list of the same version is asked until it has this one,");
    other_answers = 3, other_digest = 255;
    run(control, "samples name=mine\nb\na\n", &reply);
    is_int(other_answers, 2, "unless the other list is the one that replaces it");
    other_answers = 0;
    no_memory = true;
    is_int(run(control, "samples name=mine action=remove\n", &reply), -ENOMEM, "without memory others hear of nothing");
    is_int(run(control, "samples name=mine\nb\n", &reply), -ENOMEM, "whatever is put");
    no_memory = false;
    is_int(run(control, "plan epoch=1 ranks=3 batch=1 samples=mine count=2 rank=0\n", &reply), 0, "nothing is changed");
    is_int(run(control, "samples name=mine action=remove\n\n", &reply), -EHOSTUNREACH, "it is removed");
    is_int(run(control, "plan epoch=1 ranks=3 batch=1 samples=mine rank=0\n", &reply), -ENOENT, "and gone");
    world.courier = 0;
    is_int(run(control, "samples name=mine\nb\na\n", &reply), 0, "without a world there is nobody to have it");
    is_int(run(control, "samples name=mine action=remove\nb\n", &reply), -EINVAL, "a removal with paths");
    is_int(run(control, "samples name=mine action=remove\n", &reply), 0, "a removal");
    is_int(run(control, "samples name=mine action=remove\n", &reply), -ENOENT, "a second one");
    is_int(run(control, "samples name=all action=remove\n", &reply), -EEXIST, "of what is always there");
    is_int(verbs_class("samples name=x\n", 15), WORK_TURN, "what waits for other nodes holds up nobody else");
    lists_of = NULL;
}

/* Of a local epoch the rest is refused unless it is said from which layout the epoch began. */
static void test_skip_needs_layout(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, request = STR_INIT;
    char digest[DIGEST_TEXT];
    reset();
    is_int(run(control, "plan epoch=8 ranks=3 batch=1 mode=local skip=1 tail=short\n", &reply), -EINVAL,
           "the rest of a local epoch, of any layout");
    ok(strstr(reply.data, "needs `layout=`"), "the reason is said");
    str_addf(&request, "plan epoch=8 ranks=3 batch=1 mode=local skip=1 tail=short layout=%s\n",
             digest_format(layout_digest(layout), digest));
    is_int(run(control, request.data, &reply), 0, "of the layout that it began with");
    is_int(run(control, "plan epoch=8 ranks=3 batch=1 skip=1 tail=short\n", &reply), 0,
           "other modes do not go by the layout");
}

static void test_told_again(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    run(control, "stage\n", &reply);
    look(control, &reply);
    is_uint(told, 1, "those that have not heard are given time");
    atomic_store(&control->stage_told, clock_now() - UINT64_C(4000000000));
    look(control, &reply);
    is_uint(told, 2, "and are then told again");
    ok(last_command == WORLD_STAGE && last_token == fake.progress.round, "of the same round");
    look(control, &reply);
    is_uint(told, 2, "but not all the time");
}

static void test_stop(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    run(control, "stage\n", &reply);
    is_int(run(control, "stage action=stop\n", &reply), 0, "stop");
    ok(fake.stops == 1 && told == 2 && last_command == WORLD_STAGE_STOP && last_token == fake.progress.round,
       "all are stopped");

    reset();
    tell_error = -EAGAIN;
    is_int(run(control, "stage\n", &reply), -EAGAIN, "others that cannot be told");
    is_str(reply.data, "cannot start staging: Resource temporarily unavailable", "are a reason");
    is_int(fake.progress.state, STAGE_IDLE, "and nothing is begun");
    tell_error = -ENOTCONN;
    is_int(run(control, "stage\n", &reply), 0, "a node that is alone stages alone");
    is_int(fake.progress.state, STAGE_RUNNING, "as it should");
    reset();
    fake.start_error = -ENOMEM;
    is_int(run(control, "stage\n", &reply), -ENOMEM, "when it fails here");
    ok(told == 2 && last_command == WORLD_STAGE_STOP, "it is called off elsewhere");
}

static void test_command(struct control *control)
{
    reset();
    control_command(control, WORLD_STAGE, 12346);
    ok(fake.progress.state == STAGE_RUNNING && fake.progress.round == 12346, "another node's round begins here");
    is_int(told, 0, "and is not passed on");
    control_command(control, WORLD_STAGE_STOP, 12346);
    is_int(fake.stops, 1, "and stops");
    control_command(control, WORLD_UMOUNT, 0);
    ok(fake.stops == 1 && fake.progress.state == STAGE_STOPPED, "other commands are not for us");
}

static void test_umount(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    is_int(run(control, "umount\n", &reply), 0, "umount");
    is_uint(reply.length, 0, "says nothing");
    ok(told == 1 && last_command == WORLD_UMOUNT, "the others are told");
    tell_error = -ENOTCONN;
    is_int(run(control, "umount\n", &reply), -ENOTCONN, "nobody is told by a node that is alone");
    is_int(run(control, "umount now=1\n", &reply), -EINVAL, "it has no keys");
}

/* --- turns --- */

static void test_turn_refused(struct control *control)
{
    static const struct {
        const char *request;
        int error;
        const char *why;
    } refused[] = {
        {"exchange fraction=0.1\n", -EINVAL, "`exchange` needs `epoch="},
        {"exchange epoch=1\n", -EINVAL, "`exchange` needs `fraction="},
        {"exchange epoch=-1 fraction=0.1\n", -EINVAL, "`epoch=-1`: must be a whole number"},
        {"exchange epoch=1 fraction=1.1\n", -ERANGE, "`fraction=1.1`: must be 0 to 1"},
        {"exchange epoch=1 fraction=.1\n", -EINVAL, "`fraction=.1`"},
        {"exchange epoch=1 fraction=0.1234667\n", -EINVAL, "at most six decimals"},
        {"exchange epoch=1 fraction=0.1 seed=x\n", -EINVAL, "`seed=x`"},
        {"exchange epoch=1 fraction=0.1\nmore\n", -EINVAL, "takes nothing after"},
        {"exchange epoch=1 fraction=0.1 wait=0\n", -ERANGE, "`wait=0`: must be 1 to 3600 seconds"},
        {"shuffle seed=1 wait=3601\n", -ERANGE, "`wait=3601`"},
        {"shuffle\n", -EINVAL, "`shuffle` needs `seed="},
        {"shuffle seed=\n", -EINVAL, "`seed=`"},
        {"shuffle seed=1 fraction=0.1\n", -EINVAL, "fraction"},
    };
    CLEANUP_STR struct str reply = STR_INIT;
    reset();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        is_int(run(control, refused[i].request, &reply), refused[i].error, "refused: %s", refused[i].request);
        ok(strstr(reply.data, refused[i].why), "says why: %s", reply.data);
    }
    is_int(asked, 0, "nobody was asked for anything");
}

static void set_next_turn(const struct layout *before, const struct layout *after)
{
    next_turn.before = *layout_digest(before);
    next_turn.after = *layout_digest(after);
}

static void check_reply(const struct str *reply, const char *turn, const char *samples, const char *bytes)
{
    CLEANUP_STR struct str quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    str_addf(&quoted, "\"%s\"", digest_format(&next_turn.after, digest));
    check(reply, "nodes", "3");
    check(reply, "turn", turn);
    check(reply, "layout", quoted.data);
    check(reply, "samples", samples);
    check(reply, "bytes", bytes);
    is_int(reply->data[reply->length - 1], '\n', "a line");
}

static void test_turn(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    const struct turn *turn = &world.last.turn;
    reset();
    set_next_turn(layout, layout_after);
    is_int(run(control, "exchange epoch=7 fraction=0.25 seed=5\n", &reply), 0, "exchange");
    check_reply(&reply, "1", "2", "150");
    ok(turn->cause == TURN_EXCHANGE && turn->fraction == 250000 && turn->epoch == 7 && turn->seed == 5,
       "as it was meant");
    is_uint(asked_seconds, 60, "it waits for a minute");
    is_int(run(control, "exchange epoch=7 fraction=0.25 seed=5 wait=5\n", &reply), 0, "the same again");
    check_reply(&reply, "1", "2", "150");
    is_uint(asked_seconds, 5, "or as long as is wished");
    set_next_turn(layout_after, layout_after);
    is_int(run(control, "exchange epoch=8 fraction=0\n", &reply), 0, "one that moves nothing");
    check_reply(&reply, "2", "0", "0");
    set_next_turn(layout_after, layout);
    is_int(run(control, "shuffle seed=3\n", &reply), 0, "shuffle");
    check_reply(&reply, "3", "2", "150");
    ok(turn->cause == TURN_SHUFFLE && turn->fraction == TURN_WHOLE && turn->epoch == 0 && turn->seed == 3, "is whole");
    next_turn.before.byte[0] ^= 1;
    is_int(run(control, "shuffle seed=4\n", &reply), 0, "from a layout that is not kept any more");
    check(&reply, "turn", "4");
    check(&reply, "samples", "");
}

static void test_turn_in_vain(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    static const char request[] = "shuffle seed=9";
    reset();
    turn_error = -ETIMEDOUT;
    is_int(run(control, request, &reply), -ETIMEDOUT, "what fails");
    is_str(reply.data, "told why", "fails with the peers' reason");
    reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    is_int(run(control, request, &reply), 0, "alone");
    is_str(reply.data, "{\"nodes\":1,\"turn\":0,\"layout\":null,\"samples\":0,\"bytes\":0}\n", "nothing moves");
    is_int(asked, 0, "nor is anybody asked");
}

/* What went wrong is said until it has gone right. */
static void test_turn_health(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT;
    reset();
    world.failed = (struct turn_outcome){.record = {.turn = {TURN_EXCHANGE, 1, 2, 3}}, .status = -ENOMEM, .node = 2};
    world.unsaved = -ENOSPC;
    get_status(control, &json);
    check(&json, "turn.failed", "\"exchange\"");
    ok(strstr(json.data, "the last change of owners (exchange) failed because of node 2: Cannot allocate memory"),
       "health names the turn, the node and why");
    ok(strstr(json.data, "the world cannot be saved in") && strstr(json.data, "No space left on device"),
       "and the directory that takes nothing");
    world.failed.node = UINT32_MAX;
    get_status(control, &json);
    ok(strstr(json.data, "(exchange) took too long"), "where no node is to blame it names none");
    reset();
    get_status(control, &json);
    ok(!strstr(json.data, "change of owners") && !strstr(json.data, "cannot be saved"), "else it says nothing");
}

static void test_move(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT, metrics = STR_INIT;
    reset();
    get_status(control, &json);
    check(&json, "turn", "{\"number\": 0, \"cause\": null, \"before\": null, \"failed\": null}");
    check(&json, "move.state", "\"none\"");
    world.last = (struct turn_record){.k = 4, .turn = {TURN_EXCHANGE, 250000, 9, 2}};
    peer[0].news.turn = peer[1].news.turn = 4;
    peer[0].news.move = (struct move_news){.samples = 5, .bytes = 100, .come_bytes = 40, .nanoseconds = 70};
    peer[1].news.move = (struct move_news){.samples = 6, .bytes = 200, .come_bytes = 200, .nanoseconds = 60};
    peer[1].news.moved = 4;
    peer[2].news.turn = peer[2].news.moved = 3;
    peer[2].news.move.bytes = 1000;
    get_status(control, &json);
    check(&json, "turn.number", "4");
    check(&json, "turn.cause", "\"exchange\"");
    check(&json, "turn.epoch", "9");
    check(&json, "turn.fraction", "0.250000");
    check(&json, "turn.seed", "2");
    check(&json, "move.state", "\"moving\"");
    check(&json, "move.waiting_for", "2");
    check(&json, "move.samples", "11");
    check(&json, "move.bytes", "300");
    check(&json, "move.come_bytes", "240");
    check(&json, "move.elapsed", "70");
    check(&json, "world.2.turn", "3");
    check(&json, "world.1.moved", "4");
    check(&json, "world.1.move.bytes", "200");
    is_int(control_metrics(control, &metrics), 0, "metrics");
    ok(strstr(metrics.data, "\ndealfs_turn 4\n") && strstr(metrics.data, "\ndealfs_moving 0\n"), "the turn");
    ok(strstr(metrics.data, "\ndealfs_move_bytes{of=\"come\"} 200\n"), "and this node's move");
    world.state = WORLD_DEGRADED;
    get_status(control, &json);
    check(&json, "move.state", "\"ended\"");
    peer[0].news.moved = peer[2].news.turn = peer[2].news.moved = 4;
    get_status(control, &json);
    check(&json, "move.state", "\"done\"");
    check(&json, "move.bytes", "1300");
}

/* From which layout is a plan? None is waited for, and nothing is begun. */
static void check_plan(struct control *control, const char *keys, const struct layout *expected, const char *what)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT, quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    str_addf(&request, "plan ranks=3 batch=1 mode=local reply=summary %s\n", keys);
    is_int(run(control, request.data, &reply), 0, "plan %s, %s", keys, what);
    str_addf(&quoted, "\"%s\"", digest_format(layout_digest(expected), digest));
    check(&reply, "layout", quoted.data);
}

static void now_in(const struct layout *now)
{
    world.layout = *layout_digest(now);
    world.owners = now;
}

static void test_plans(struct control *control)
{
    CLEANUP_STR struct str pinned = STR_INIT, reply = STR_INIT;
    char digest[DIGEST_TEXT];
    reset();
    check_plan(control, "epoch=0", layout, "the layout of now");
    now_in(layout_after);
    check_plan(control, "epoch=0", layout_after, "when it has changed");
    str_addf(&pinned, "epoch=1 layout=%s", digest_format(layout_digest(layout), digest));
    check_plan(control, pinned.data, layout, "from the layout before, as it is named");
    is_int(run(control, "plan epoch=0 ranks=3 batch=1 mode=local exchange=0.5", &reply), -EINVAL,
           "exchange= is no key");
    ok(strstr(reply.data, "unknown key `exchange`"), "of a plan: %s", reply.data);
    is_int(asked, 0, "no plan asks for a turn");
    now_in(layout);
}

static void check_class(const char *request, enum work_class class, const char *what)
{
    is_int(verbs_class(request, request ? strlen(request) : 0), class, "%s: %s", what, request ? request : "");
}

static void test_classes(void)
{
    check_class("exchange epoch=9 fraction=0.1\n", WORK_TURN, "waits for a turn");
    check_class(" shuffle seed=1", WORK_TURN, "this, too");
    check_class("plan ranks=3 batch=1 mode=local epoch=2\n", WORK_LONG, "a plan waits for none");
    check_class("where\na\n", WORK_QUICK, "other verbs are quick");
    check_class("exchanges\n", WORK_QUICK, "so is what is refused");
    check_class(NULL, WORK_QUICK, "and nothing at all");
}

/* --- before the first world --- */

static void test_waiting(void)
{
    CLEANUP_STR struct str json = STR_INIT, text = STR_INIT, reply = STR_INIT;
    struct control *control = create(false);
    reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    get_status(control, &json);
    check(&json, "catalog", "");
    check(&json, "health.0", "\"there is no catalog yet: this node waits for its first world, which brings it\"");
    is_int(control_metrics(control, &text), 0, "metrics without a catalog");
    is_int(control_nodes(control, &text), 0, "nodes without one");
    is_int(run(control, "where\na\n", &reply), -EAGAIN, "what needs it says so");
    is_str(reply.data, "there is no catalog yet: this node waits for its first world, which brings it", "in words");
    control_command(control, WORLD_STAGE, 1);
    is_int(fake.progress.state, STAGE_IDLE, "nothing is staged");
    ok(lists_find(control, INO_SAMPLES) == NULL, "there are no samples");
    is_int(control_fill(control, catalog, (struct store *)&fake, NULL), 0, "then it comes");
    get_status(control, &json);
    check(&json, "catalog.files", "3");
    check(&json, "health", "[]");
    is_int(run(control, "where\na\n", &reply), 0, "and can be asked about");
    is_str(reply.data, "0\t0\tram\ta\n", "with itself as the owner of what it holds");
    control_destroy(control);
    control_destroy(create(false));
}

int main(void)
{
    fake.stats = (struct store_stats){
        .reads = {1, 2, 3, 4},
        .tier[TIER_RAM] = {.state = TIER_OPEN, .capacity = 1000, .held = 10},
    };
    mount = (struct mount_config){
        .source = strdup(test_path("source")),
        .mountpoint = strdup(test_path("mnt")),
        .state = strdup(test_directory()),
        .control = strdup(test_path("control")),
        .id = strdup("my id"),
    };
    make_catalog();
    make_layout();
    struct control *control = create(true);
    test_joined(control);
    test_degraded(control);
    test_files(control);
    test_where(control);
    test_stage(control);
    test_stage_sums(control);
    test_stage_ends(control);
    test_stage_round(control);
    test_deal(control);
    test_digest_after_join(control);
    test_skip_needs_layout(control);
    test_lists(control);
    test_any_numbers(control);
    test_told_again(control);
    test_stop(control);
    test_command(control);
    test_umount(control);
    test_turn_refused(control);
    test_turn(control);
    test_turn_in_vain(control);
    test_turn_health(control);
    test_plans(control);
    test_move(control);
    control_destroy(control);
    test_classes();
    test_waiting();
    is_int(views, 0, "every view was released");
    layout_close(layout);
    layout_close(layout_after);
    catalog_close(catalog);
    config_fini(&mount);
    return done_testing();
}
