/* Many nodes in one process: every byte right, each file read once in the whole world, and readers that wait for each
 * other. */
#include "tests/fs/world/peering.h"

#include "tests/lib/tap.h"

#include <errno.h>

static uint64_t reads_from_peers(struct fake *f)
{
    uint64_t reads = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct store_stats stats;
        fake_stats(f, i, &stats);
        reads += stats.reads[PLACE_PEER];
    }
    return reads;
}

static bool all_read_all(struct fake *f)
{
    bool right = true;
    for (uint32_t i = 0; i < f->nodes; i++)
        right &= peering_read_all(f, i);
    return right;
}

static void test_alone(void)
{
    struct fake f;
    peering_begin(&f, 1, LONG);
    is_int(peering_state(&f, 0), WORLD_ALONE, "a node that was in no world is alone");
    ok(peering_read_all(&f, 0), "and reads all");
    uint64_t bytes = peering_source_bytes(&f);
    ok(peering_read_all(&f, 0), "twice");
    is_uint(peering_source_bytes(&f), bytes, "and keeps all of it");
    is_int(peers_command(f.node[0].peers, WORLD_STAGE, 1), -ENOTCONN, "there is nobody to be told anything");
    fake_end(&f);
}

static void test_world(uint32_t nodes, uint32_t groups)
{
    struct fake f;
    uint64_t bytes = groups * catalog_bytes(dataset.catalog);
    peering_begin(&f, nodes, LONG);
    fake_join(&f, groups);
    for (uint32_t i = 0; i < nodes; i++)
        is_int(peering_state(&f, i), WORLD_JOINED, "%u nodes: node %u is joined", nodes, i);
    ok(all_read_all(&f), "every byte is right on each of %u nodes in %u groups", nodes, groups);
    is_uint(peering_source_bytes(&f), bytes, "the source was read once for each group");
    ok(all_read_all(&f), "and again");
    is_uint(peering_source_bytes(&f), bytes, "which costs nothing at the source");
    uint64_t peers = reads_from_peers(&f);
    ok(nodes == groups || peers > 0, "%llu reads came from peers", (unsigned long long)peers);
    struct counts counts = peering_counts(&f, 0);
    ok(!counts.timeouts && !counts.bad, "none was late or bad");
    fake_end(&f);
}

/* Only what a node owns is in its tiers. */
static void test_kept(void)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    all_read_all(&f);
    uint32_t file = peering_owned(&f, 1, 0);
    ok(!store_holds(f.node[0].store, file, 0) && store_holds(f.node[1].store, file, 0), "a file lies with its owner");
    uint64_t trimmed = store_trim(f.node[0].store, 0, UINT32_MAX, true);
    is_uint(trimmed, 0, "nothing that others own is held");
    fake_end(&f);
}

static void test_capacity(void)
{
    struct fake f;
    const uint64_t ram[] = {40 * MIB, 0, 20 * MIB};
    fake_begin(&f, &dataset, 3, ram, LONG, NULL);
    fake_join(&f, 1);
    ok(all_read_all(&f), "every byte is right where one node has no room and all together too little");
    fake_end(&f);
}

static uint64_t sent_for(struct fake *f, uint32_t reader, struct span span, bool *right)
{
    enum place place;
    uint64_t before = atomic_load(&f->node[!reader].sent);
    *right &= read_check(f->node[reader].store, &dataset, &span, &place) == 0 && place == PLACE_PEER;
    return atomic_load(&f->node[!reader].sent) - before;
}

/* Of a large file no more blocks come than a read touches. */
static void test_blocks(void)
{
    enum { MESSAGE = 128, SPANS = 200 };
    struct fake f;
    const uint32_t file = dataset_file(&dataset, "middle");
    const uint64_t size = dataset_size(&dataset, file);
    enum place place;
    struct span span = {.file = file, .length = 1};
    uint64_t random = 1;
    bool right = true, little = true;
    peering_join(&f, 2, LONG);
    read_check(f.node[0].store, &dataset, &span, &place);
    uint32_t reader = place != PLACE_PEER;
    span.length = 4096;
    ok(sent_for(&f, reader, span, &right) <= 4096 + 8 + MESSAGE, "for 4 KiB at the beginning 4 KiB come");
    span.offset = 3 * VALUE_BYTES + 6000;
    ok(sent_for(&f, reader, span, &right) <= 2 * (4096 + 8) + MESSAGE, "for 4 KiB that lie in two blocks 8 KiB");
    span.offset = size - 4096;
    ok(sent_for(&f, reader, span, &right) <= 4096 + 77 + 16 + MESSAGE, "for the end of the file no more");
    span = (struct span){.file = file, .offset = VALUE_BYTES, .length = 2 * VALUE_BYTES};
    ok(sent_for(&f, reader, span, &right) > 2 * VALUE_BYTES, "whole values come whole");
    ok(right, "every byte is right");
    for (int i = 0; i < SPANS; i++) {
        span.offset = random_next(&random) % size;
        span.length = 1 + (uint32_t)(random_next(&random) % (i % 2 ? 9000 : SPAN_BYTES));
        if (span.length > size - span.offset)
            span.length = (uint32_t)(size - span.offset);
        uint32_t blocks = span.length / 4096 + 2;
        little &= sent_for(&f, reader, span, &right) <= blocks * (4096 + 8) + 9 * (VALUE_HEADER + 16) + MESSAGE;
    }
    ok(right, "so it is at %d random places", SPANS);
    ok(little, "of which nothing but the blocks that are touched comes");
    ok(!store_holds(f.node[reader].store, file, 0), "no tier of the reader keeps a part");
    fake_end(&f);
}

/* Busy is not gone: many nodes' readers wait for one load that takes longer than the timeout. */
static void test_slow_source(void)
{
    enum { READERS = 6 };
    struct fake f;
    peering_join_faulty(&f, 3, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    faults_set("hang");
    struct reader reader[READERS];
    for (uint32_t i = 0; i < READERS; i++)
        reader_start(&reader[i], &f, i % 3, file);
    for (int i = 0; atomic_load(&f.node[1].waits) < READERS * 2 / 3; i++)
        wait_step(i, "the owner says WAIT");
    pass("an owner whose source hangs says so to all who ask");
    faults_set("");
    bool right = readers_join(reader, READERS, PLACES);
    for (uint32_t i = 0; i < READERS; i++)
        right &= reader[i].place == (i % 3 == 1 ? PLACE_SOURCE : PLACE_PEER);
    ok(right, "and then answers them");
    is_uint(fake_samples(&f), 1, "out of one read of the source");
    fake_end(&f);
}

/* A full house: more reads than slots, to a node that is slow and to one that is not. */
static void test_many(void)
{
    enum { READERS = 64, ROUNDS = 5 };
    struct fake f;
    static struct reader reader[READERS];
    peering_join(&f, 4, LONG);
    bool right = true;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < READERS; i++)
            reader_start(&reader[i], &f, i % 4, (i * 7 + round) % SMALL_FILES);
        right &= readers_join(reader, READERS, PLACES);
    }
    ok(right, "%d readers at once, repeatedly", READERS);
    fake_end(&f);
}

/* More fetches than a peer's share of the slots wait for each other. */
static void test_queue(void)
{
    enum { READERS = 100 };
    struct fake f;
    static struct reader reader[READERS];
    peering_join(&f, 3, LONG);
    uint32_t file = peering_owned(&f, 1, 0), other = peering_owned(&f, 2, 0);
    peering_harm(&f, 1, READERS, FAKE_HOLD);
    readers_start(reader, READERS, &f, 0, file);
    for (int i = 0; atomic_load(&f.node[1].served) < 32; i++)
        wait_step(i, "a peer's share of the slots is taken");
    peering_reads(&f, 0, other, PLACE_PEER, "another peer's file meanwhile", "comes from that peer");
    atomic_store(&f.node[1].fault, FAKE_NONE);
    fake_let_go(&f);
    ok(readers_join(reader, READERS, PLACE_PEER), "%d reads of one peer are answered in turn", READERS);
    fake_end(&f);
}

static void test_news(void)
{
    struct fake f;
    peering_join(&f, 2, 2 * SECOND);
    peering_read_all(&f, 0);
    struct node_news news = {0};
    for (int i = 0; !news.reads[PLACE_SOURCE] || !news.held; i++) {
        wait_step(i, "a node tells its news");
        news_read(ring_news(&f.node[0].ring, 0), &news);
    }
    is_uint(news.capacity, PEERING_RAM, "a node tells how much it can hold");
    uint64_t version = atomic_load(&news.version);
    for (int i = 0; atomic_load(&ring_news(&f.node[0].ring, 0)->version) == version; i++)
        wait_step(i, "it goes on telling");
    pass("and goes on telling it");
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    test_alone();
    test_world(1, 1);
    test_world(2, 1);
    test_world(4, 1);
    test_world(4, 2);
    test_kept();
    test_capacity();
    test_blocks();
    test_slow_source();
    test_many();
    test_queue();
    test_news();
    return peering_done();
}
