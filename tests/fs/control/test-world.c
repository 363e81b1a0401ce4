/* What the control mount says of a world, against one that is made up: its status, nodes, owners and lists. */
#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/lists.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "tests/fs/control/fake-node.h"
#include "tests/lib/tap.h"

#include <string.h>
#include <unistd.h>

static void test_joined(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT, quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    fake_reset();
    fake_status(control, &json);
    str_addf(&quoted, "\"%s\"", digest_format(layout_digest(layout), digest));
    fake_checks(&json, "node=1 nodes=3 state='joined'");
    fake_check(&json, "layout", quoted.data);
    fake_checks(&json, "pids.courier=4711 world.0.host='alpha' world.0.state='joined' world.0.held=100 "
                       "world.0.capacity=2000 world.0.reads.peer=6");
    fake_check(&json, "world.1.id", "\"my id\"");
    fake_checks(&json, "world.1.held=10 world.1.reads.source=4 world.3= lost.bytes=0 lost.rejoin=null "
                       "peers.timeouts=8 peers.bad=9 health=[]");
    peer[2].state = PEER_SUSPECT;
    fake_status(control, &json);
    fake_check(&json, "world.2.state", "\"suspect\"");
    fake_check(&json, "health.0",
               "\"node 2 (ga\\\\x0amma) did not answer in time: for a while what it owns is read from "
               "the source\"");
}

static void test_degraded(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT;
    fake_reset();
    world.state = WORLD_DEGRADED;
    world.courier = 0;
    world.lost_bytes = 75;
    peer[0].state = peer[2].state = PEER_LOST;
    fake_status(control, &json);
    fake_checks(&json, "state='degraded' pids.courier=null world.0.state='lost' world.1.state='degraded' "
                       "lost.nodes=2 lost.bytes=75 lost.percent=25.0");
    CLEANUP_STR struct str rejoin = STR_INIT, sentence = STR_INIT;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    str_addf(&rejoin, "\"mpirun --allow-run-as-root --bind-to none -n 3 --host 'alpha,%s,ga\\nmma' dealfs join '%s'\"",
             host, mount.mountpoint);
    fake_check(&json, "lost.rejoin", rejoin.data);
    str_addf(&sentence,
             "\"2 of 3 nodes cannot be asked: what they own, 75 B (25.0%% of the dataset), is read from the source. To "
             "form a world again: %.*s\"",
             (int)rejoin.length - 2, rejoin.data + 1);
    fake_check(&json, "health.0", sentence.data);
    world.state = WORLD_JOINED;
    peer[0].state = PEER_GOOD;
    fake_status(control, &json);
    fake_checks(&json, "state='degraded' world.0.state='joined' lost.nodes=1");
    world.lost_bytes = 100000;
    fake_status(control, &json);
    fake_check(&json, "lost.percent", "100.0");
}

static void test_files(struct control *control)
{
    CLEANUP_STR struct str nodes = STR_INIT, node = STR_INIT, metrics = STR_INIT;
    fake_reset();
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

static void test_where(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, expected = STR_INIT;
    fake_reset();
    is_int(fake_run(control, "where\na\nb\nc\nd\n", &reply), 0, "where");
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
    is_int(fake_run(control, "where\na\nb\nc\nd\n", &reply), 0, "where in a world that is gone");
    is_str(reply.data, expected.data, "says the same");
}

/* What this node planned alone is still known by its digest once the world has more nodes than the plan has ranks. */
static void test_digest_after_join(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, request = STR_INIT;
    const char *digest;
    fake_reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    is_int(fake_run(control, "plan epoch=7 ranks=1 batch=1 reply=summary\n", &reply), 0,
           "planned before there is a world");
    long n = json_find(reply.data, reply.length, "digest", &digest);
    str_addf(&request, "plan epoch=7 ranks=1 batch=1 rank=0 digest=%.*s\n", (int)n - 2, digest + 1);
    fake_reset();
    is_int(fake_run(control, request.data, &reply), 0, "asked for by its digest in a world of three nodes");
    str_addf(&request, "plan epoch=7 ranks=1 batch=1 rank=0 feed=yes digest=%.*s\n", (int)n - 2, digest + 1);
    is_int(fake_run(control, strchr(request.data, '\n') + 1, &reply), 0, "and to be read ahead");
    is_str(reply.data, "0\n1\n2\n", "the list is the same");
}

/* A cached plan of other samples has numbers that mean nothing in this list. */
static void test_digest_of_others(struct control *control)
{
    static const char *const keys[] = {"match=nosuch reply=text",
                                       "match=nosuch reply=spans",
                                       "match=nosuch reply=u32",
                                       "match=nosuch reply=paths",
                                       "skip=1",
                                       "match=nosuch reply=summary"};
    CLEANUP_STR struct str reply = STR_INIT;
    const char *digest;
    fake_reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    is_int(fake_run(control, "plan epoch=8 ranks=1 batch=1 reply=summary\n", &reply), 0, "a plan of all samples");
    CLEANUP_STR struct str summary = reply;
    reply = (struct str)STR_INIT;
    long n = json_find(summary.data, summary.length, "digest", &digest);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        CLEANUP_STR struct str request = STR_INIT;
        str_addf(&request, "plan epoch=8 ranks=1 batch=1 rank=0 %s digest=%.*s\n", keys[i], (int)n - 2, digest + 1);
        is_int(fake_run(control, request.data, &reply), -ESTALE, "its digest with %s", keys[i]);
    }
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
        for (int then = 0; then < 2; then++) { /* then again, by the digest, in another world */
            fake_reset();
            if ((random >> 41 & 1) != (uint64_t)then)
                world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
            str_clear(&request);
            str_adds(&request, any.data);
            str_adds(&request, then ? " rank=0\n" : " reply=summary\n");
            int error = fake_run(control, request.data, &reply);
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
    fake_reset();
    others.lists = control;
    peer[2].state = PEER_LOST;
    is_int(fake_run(control, "samples name=mine\nb\na\n", &reply), -EHOSTUNREACH, "a list, where a node is lost");
    ok(strstr(reply.data, "can be reached: node 2 (ga\\x0amma)"), "the node is named: %s", reply.data);
    is_int(fake_run(control, "plan epoch=1 ranks=3 batch=1 samples=mine rank=0\n", &reply), 0,
           "it is there all the same");
    others.false_answers = 3, others.false_digest = 0;
    fake_run(control, "samples name=mine\nb\na\n", &reply);
    is_int(others.false_answers, 0, "a node with another list of the same version is asked until it has this one,");
    others.false_answers = 3, others.false_digest = 255;
    fake_run(control, "samples name=mine\nb\na\n", &reply);
    is_int(others.false_answers, 2, "unless the other list is the one that replaces it");
    others.false_answers = 0;
    no_memory = true;
    is_int(fake_run(control, "samples name=mine action=remove\n", &reply), -ENOMEM,
           "without memory others hear of nothing");
    is_int(fake_run(control, "samples name=mine\nb\n", &reply), -ENOMEM, "whatever is put");
    no_memory = false;
    is_int(fake_run(control, "plan epoch=1 ranks=3 batch=1 samples=mine count=2 rank=0\n", &reply), 0,
           "nothing is changed");
    is_int(fake_run(control, "samples name=mine action=remove\n\n", &reply), -EHOSTUNREACH, "it is removed");
    is_int(fake_run(control, "plan epoch=1 ranks=3 batch=1 samples=mine rank=0\n", &reply), -EHOSTUNREACH,
           "and gone here; other nodes may have it");
    world.courier = 0;
    is_int(fake_run(control, "samples name=mine\nb\na\n", &reply), -EHOSTUNREACH,
           "when the world has ended, the other nodes lack it");
    is_int(fake_run(control, "samples name=mine action=remove\nb\n", &reply), -EINVAL, "a removal with paths");
    is_int(fake_run(control, "samples name=mine action=remove\n", &reply), -EHOSTUNREACH, "a removal");
    is_int(fake_run(control, "samples name=mine action=remove\n", &reply), -EHOSTUNREACH,
           "a second one: the nodes of the last world may have it");
    is_int(fake_run(control, "samples name=all action=remove\n", &reply), -EEXIST, "of what is always there");
    is_int(verbs_class("samples name=x\n", 15), WORK_TURN, "what waits for other nodes holds up nobody else");
    others.lists = NULL;
}

/* Of a local epoch the rest is refused unless it is said from which layout the epoch began. */
static void test_skip_needs_layout(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT, request = STR_INIT;
    char digest[DIGEST_TEXT];
    fake_reset();
    is_int(fake_run(control, "plan epoch=8 ranks=3 batch=1 mode=local skip=1 tail=short\n", &reply), -EINVAL,
           "the rest of a local epoch, of any layout");
    ok(strstr(reply.data, "needs `layout=`"), "the reason is said");
    str_addf(&request, "plan epoch=8 ranks=3 batch=1 mode=local skip=1 tail=short layout=%s\n",
             digest_format(layout_digest(layout), digest));
    is_int(fake_run(control, request.data, &reply), 0, "of the layout that it began with");
    is_int(fake_run(control, "plan epoch=8 ranks=3 batch=1 skip=1 tail=short\n", &reply), 0,
           "other modes do not go by the layout");
}

/* --- before the first world --- */

static void test_waiting(void)
{
    CLEANUP_STR struct str json = STR_INIT, text = STR_INIT, reply = STR_INIT;
    struct control *control = fake_create(false);
    fake_reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    fake_status(control, &json);
    fake_check(&json, "catalog", "");
    fake_check(&json, "health.0", "\"there is no catalog yet: this node waits for its first world, which brings it\"");
    is_int(control_metrics(control, &text), 0, "metrics without a catalog");
    is_int(control_nodes(control, &text), 0, "nodes without one");
    is_int(fake_run(control, "where\na\n", &reply), -EAGAIN, "what needs it says so");
    is_str(reply.data, "there is no catalog yet: this node waits for its first world, which brings it", "in words");
    control_command(control, WORLD_STAGE, 1);
    is_int(fake.progress.state, STAGE_IDLE, "nothing is staged");
    ok(lists_find(control, INO_SAMPLES) == NULL, "there are no samples");
    is_int(control_fill(control, catalog, (struct store *)&fake, NULL), 0, "then it comes");
    fake_status(control, &json);
    fake_checks(&json, "catalog.files=3 health=[]");
    is_int(fake_run(control, "where\na\n", &reply), 0, "and can be asked about");
    is_str(reply.data, "0\t0\tram\ta\n", "with itself as the owner of what it holds");
    control_destroy(control);
    control_destroy(fake_create(false));
}

int main(void)
{
    fake_begin();
    struct control *control = fake_create(true);
    test_joined(control);
    test_degraded(control);
    test_files(control);
    test_where(control);
    test_digest_after_join(control);
    test_digest_of_others(control);
    test_skip_needs_layout(control);
    test_lists(control);
    test_any_numbers(control);
    control_destroy(control);
    test_waiting();
    fake_end();
    return done_testing();
}
