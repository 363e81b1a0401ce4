/* What is fed in a world: asked of its owner behind all others, there and here, and loaded once. */
#include "tests/fs/world/peering.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FED_FETCHES = 24, FED_SLOTS = 12 }; /* as in fetch.c and serve.c */

struct asked {
    struct store_read read; /* first */
    atomic_int error;       /* 1: not answered yet */
};

static void asked_done(struct store_read *read, int error)
{
    if (!error && !dataset_matches(&dataset, &read->span, &read->answer))
        error = -EBADMSG;
    answer_release(&read->answer);
    atomic_store(&((struct asked *)read)->error, error);
}

static void ask(struct fake *f, uint32_t node, struct asked *a, struct span span, bool fed)
{
    memset(a, 0, sizeof *a);
    a->read.span = span;
    a->read.fed = fed;
    a->read.done = asked_done;
    atomic_store(&a->error, 1);
    int error = store_read(f->node[node].store, &a->read);
    if (error != -EINPROGRESS)
        asked_done(&a->read, error);
}

static struct span whole(uint32_t file)
{
    return (struct span){.file = file, .length = (uint32_t)dataset_size(&dataset, file)};
}

static struct asked *ask_many(struct fake *f, uint32_t node, uint32_t file, int count, bool fed)
{
    struct asked *asked = calloc((size_t)count, sizeof *asked);
    for (int i = 0; i < count; i++)
        ask(f, node, &asked[i], whole(file), fed);
    return asked;
}

/* Waits for all, and frees them. */
static bool are_right(struct asked *asked, int count, enum place place)
{
    bool right = true;
    for (int i = 0; i < count; i++) {
        for (int step = 0; atomic_load(&asked[i].error) == 1; step++)
            wait_step(step, "what is fed is answered");
        right &= atomic_load(&asked[i].error) == 0 && (place == PLACES || asked[i].read.place == place);
    }
    free(asked);
    return right;
}

static void wait_asks(struct fake *f, uint32_t node, uint32_t asks)
{
    for (int i = 0; atomic_load(&f->node[node].asks) < asks; i++)
        wait_step(i, "other nodes are asked");
}

/* Node 1 answers nobody for a while. */
static void test_share(void)
{
    enum { FED = 60, TAKEN_BACK = 10, ELSEWHERE = 5 };
    struct fake f;
    struct store_stats stats;
    peering_join(&f, 3, LONG);
    uint32_t file = peering_owned(&f, 1, 0), wanted = peering_owned(&f, 1, 1), other = peering_owned(&f, 2, 0);
    peering_harm(&f, 1, 2 * FED, FAKE_HOLD);
    struct asked *fed = ask_many(&f, 0, file, FED, true), reader;
    wait_asks(&f, 0, FED_FETCHES);
    fake_stats(&f, 0, &stats);
    is_uint(stats.fed.waits[PLACE_PEER], FED, "what is fed waits for a node, as is counted");
    ask(&f, 0, &reader, whole(wanted), false);
    wait_asks(&f, 0, FED_FETCHES + 1);
    is_uint(atomic_load(&f.node[0].asks_fed), FED_FETCHES, "a reader asks a node that is fed from at once");
    peering_reads(&f, 0, other, PLACE_PEER, "another node is asked, too", "and answers");
    ok(are_right(ask_many(&f, 0, other, ELSEWHERE, true), ELSEWHERE, PLACE_PEER),
       "what is fed from another node does not wait for what was asked before");
    int taken = 0;
    for (int i = FED - TAKEN_BACK; i < FED; i++)
        taken += store_cancel(f.node[0].store, &fed[i].read);
    is_int(taken, TAKEN_BACK, "what waits for a slot gives up");
    for (int i = FED - TAKEN_BACK; i < FED; i++)
        atomic_store(&fed[i].error, 0);
    atomic_store(&f.node[1].fault, FAKE_NONE);
    fake_let_go(&f);
    ok(are_right(fed, FED, PLACES), "all is answered in turn");
    for (int i = 0; atomic_load(&reader.error) == 1; i++)
        wait_step(i, "the reader is answered");
    is_uint(atomic_load(&f.node[0].asks_fed), FED - TAKEN_BACK + ELSEWHERE, "and was asked for the feeder");
    fake_stats(&f, 0, &stats);
    is_uint(stats.reads[PLACE_PEER], 2, "readers' reads are counted apart");
    fake_end(&f);
}

/* One slot after the other comes free. */
static void test_turns(void)
{
    enum { MOST = 32, FED = 10, WAITING = 10 };
    struct fake f;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0), fed_turns[WAITING + 2];
    peering_harm(&f, 1, 4 * MOST, FAKE_HOLD);
    struct asked *busy = ask_many(&f, 0, file, MOST, false);
    wait_asks(&f, 0, MOST);
    struct asked *fed = ask_many(&f, 0, file, FED, true), *readers = ask_many(&f, 0, file, WAITING, false);
    is_uint(atomic_load(&f.node[0].asks_fed), 0, "nothing is fed while readers have all slots");
    for (uint32_t i = 0; i < WAITING + 2; i++) {
        wait_until(atomic_load(&f.node[1].served) >= MOST + i);
        fake_let_one_go(&f);
        wait_asks(&f, 0, MOST + i + 1);
        fed_turns[i] = atomic_load(&f.node[0].asks_fed);
    }
    ok(fed_turns[0] == 1 && fed_turns[8] == 1, "after many others one that is fed has a slot, and then eight others");
    is_uint(fed_turns[WAITING + 1], 2, "and so on");
    atomic_store(&f.node[1].fault, FAKE_NONE);
    fake_let_go(&f);
    ok(are_right(busy, MOST, PLACE_PEER) & are_right(fed, FED, PLACE_PEER) & are_right(readers, WAITING, PLACE_PEER),
       "all are answered");
    fake_end(&f);
}

/* In the folder that the hanging source does not have. */
static uint32_t folder_of(uint32_t file)
{
    char name[64];
    for (uint32_t i = 0; i < SMALL_FILES; i++) {
        snprintf(name, sizeof name, "d%u/%s-%02u", i % 4, i % 3 ? "random" : "sparse", i);
        if (dataset_file(&dataset, name) == file)
            return i % 4;
    }
    return UINT32_MAX;
}

/* Another node feeds itself from files that hang; of four threads for the source one is left for readers. */
static void test_owner(void)
{
    enum { FED = 5 };
    struct fake f;
    struct asked fed[FED];
    char hang[64];
    enum place place;
    peering_join_faulty(&f, 3, LONG);
    uint32_t mine = peering_owned(&f, 1, 0), theirs = UINT32_MAX, folder = folder_of(mine);
    int asked = 0;
    snprintf(hang, sizeof hang, "hang=d[!%u]/*", folder);
    faults_set(hang);
    for (uint32_t n = 1; asked < FED || theirs == UINT32_MAX; n++) {
        uint32_t file = peering_owned(&f, 1, n);
        if (folder_of(file) == folder)
            theirs = file;
        else if (asked < FED)
            ask(&f, 0, &fed[asked++], whole(file), true);
    }
    for (int i = 0; atomic_load(&f.node[1].waits) < FED; i++)
        wait_step(i, "the owner loads what is fed");
    is_int(peering_read(&f, 1, mine, &place), 0, "the owner's own reader goes before what another node is fed");
    is_int(peering_read(&f, 2, theirs, &place), 0, "and a reader of a third node");
    is_int(place, PLACE_PEER, "out of the owner's tiers");
    int waiting = 0;
    for (int i = 0; i < FED; i++)
        waiting += atomic_load(&fed[i].error) == 1;
    is_int(waiting, FED, "while all of that waits");
    faults_set("");
    struct asked *copy = calloc(FED, sizeof *copy);
    for (int i = 0; i < FED; i++) {
        for (int step = 0; atomic_load(&fed[i].error) == 1; step++)
            wait_step(step, "what hung is answered");
        copy[i] = fed[i];
    }
    ok(are_right(copy, FED, PLACE_PEER), "which comes when the source answers");
    is_uint(fake_samples(&f), FED + 2, "read once");
    fake_end(&f);
}

/* Answers that are on their way to a node leave slots for its readers. */
static void test_answers(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    is_int(peering_read(&f, 1, file, &place), 0, "an owner has a file");
    for (int i = 0; i < 2 * FED_SLOTS; i++)
        fake_ask_silently(&f, 1, 0, file, FETCH_FED);
    for (int i = 0; atomic_load(&f.stuck) < FED_SLOTS; i++)
        wait_step(i, "what is fed takes slots");
    peering_reads(&f, 0, file, PLACE_PEER, "a reader has a slot", "of the owner's");
    is_uint(atomic_load(&f.stuck), FED_SLOTS, "which what is fed has not");
    fake_end(&f);
}

/* A node whose owner is lost has its feeder read the source, as readers do. */
static void test_lost(void)
{
    enum { FED = 40 };
    struct fake f;
    peering_join(&f, 3, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, FED, FAKE_HOLD);
    struct asked *fed = ask_many(&f, 0, file, FED, true);
    wait_asks(&f, 0, FED_FETCHES);
    fake_push(&f, 0, &(struct ring_message){.kind = RING_GONE, .node = 1});
    atomic_store(&f.node[1].fault, FAKE_NONE);
    fake_let_go(&f);
    ok(are_right(fed, FED, PLACES), "what is fed of a node that is lost comes all the same");
    fake_end(&f);
}

/* Two extents may have two owners: the read is two, and counts as one. */
static void test_crossing(void)
{
    struct fake f;
    struct store_stats stats;
    uint64_t reads = 0;
    peering_join(&f, 3, LONG);
    struct span span = {dataset_file(&dataset, "sparse-large"), 128 << 10, EXTENT_BYTES - (64 << 10)};
    for (uint32_t node = 0; node < 3; node++) {
        struct asked *fed = calloc(1, sizeof *fed);
        ask(&f, node, fed, span, true);
        ok(are_right(fed, 1, PLACES), "node %u is fed across the end of an extent", node);
        fake_stats(&f, node, &stats);
        for (enum place place = 0; place < PLACES; place++)
            reads += stats.fed.reads[place] + 10 * stats.reads[place] + 10 * stats.fed.waits[place];
    }
    is_uint(reads, 3, "each as one read");
    fake_end(&f);
}

/* --- all nodes feed and read all of it, each from another place on --- */

struct node_feed {
    struct fake *f;
    uint32_t node;
    pthread_t feeder, reader;
    bool fed, read;
};

static void *feed_all(void *argument)
{
    enum { PIECE = 128 << 10 };
    struct node_feed *n = argument;
    uint32_t files = catalog_files(dataset.catalog);
    n->fed = true;
    for (uint32_t i = 0; i < files; i++) {
        uint32_t file = (i + n->node * files / n->f->nodes) % files;
        uint64_t size = dataset_size(&dataset, file);
        int pieces = (int)((size + PIECE - 1) / PIECE);
        struct asked *asked = calloc((size_t)pieces + 1, sizeof *asked);
        for (int p = 0; p < pieces; p++) {
            uint64_t at = (uint64_t)p * PIECE, left = size - at;
            ask(n->f, n->node, &asked[p], (struct span){file, (uint32_t)(left < PIECE ? left : PIECE), at}, true);
        }
        n->fed &= are_right(asked, pieces, PLACES);
    }
    return NULL;
}

static void *read_all(void *argument)
{
    struct node_feed *n = argument;
    n->read = peering_read_all(n->f, n->node);
    return NULL;
}

static void test_once(uint32_t nodes)
{
    struct fake f;
    struct node_feed n[FAKE_NODES];
    bool right = true;
    uint64_t files = 0;
    peering_join(&f, nodes, LONG);
    for (uint32_t i = 0; i < nodes; i++) {
        n[i] = (struct node_feed){.f = &f, .node = i};
        pthread_create(&n[i].feeder, NULL, feed_all, &n[i]);
        pthread_create(&n[i].reader, NULL, read_all, &n[i]);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        pthread_join(n[i].feeder, NULL);
        pthread_join(n[i].reader, NULL);
        right &= n[i].fed && n[i].read;
    }
    ok(right, "%u nodes feed and read at a time: all bytes are right", nodes);
    is_uint(peering_source_bytes(&f), catalog_bytes(dataset.catalog), "%u nodes: each is loaded once", nodes);
    for (uint32_t i = 0; i < nodes; i++)
        files += peering_counts(&f, i).timeouts + peering_counts(&f, i).bad;
    is_uint(files, 0, "%u nodes: none was late or bad", nodes);
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    test_share();
    test_turns();
    test_owner();
    test_answers();
    test_lost();
    test_crossing();
    test_once(2);
    test_once(4);
    return peering_done();
}
