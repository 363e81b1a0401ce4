/* The bytes follow a turn: every byte is right from every node meanwhile, none comes from the source, nothing is
 * dropped that its new owner has not stored, and room is found where there is little. */
#include "tests/fs/world/peering.h"

#include "fs/world/layout.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <string.h>

enum { EPOCH = 5, READERS = 64 };

static struct turn exchange = {TURN_EXCHANGE, TURN_WHOLE, EPOCH, 0};

static struct node_news news_of(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    struct node_news news = view.peer[view.me].news;
    peers_view_release(&view);
    return news;
}

static void stage_all(struct fake *f)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        store_stage_start(f->node[i].store, 1, NULL);
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct stage_progress p;
        for (int n = 0; store_stage_progress(f->node[i].store, &p), p.state == STAGE_RUNNING; n++)
            wait_step(n, "a node is staged");
    }
}

static bool all_moved(struct fake *f, uint64_t k)
{
    bool moved = true;
    for (uint32_t i = 0; i < f->nodes; i++)
        moved &= news_of(f, i).moved == k && news_of(f, i).turn == k;
    return moved;
}

/* By the layout of now; else by the one before. */
static uint32_t owner_of(struct fake *f, uint32_t file, bool now)
{
    struct world_view view = fake_view(f, 0);
    struct extents *e;
    if (extents_create(f->dataset->catalog, &e))
        bail_out("extents");
    uint32_t owner = layout_owner(now ? view.owners : view.before, 0, extents_first(e, file));
    extents_destroy(e);
    peers_view_release(&view);
    return owner;
}

/* The n-th of the files of middle size that have moved from one node to the other; UINT32_MAX: from or to any. */
static uint32_t moved_file(struct fake *f, uint32_t from, uint32_t to, uint32_t n)
{
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog); file++) {
        uint64_t size = dataset_size(f->dataset, file);
        if (size < 100000 || size > MIB)
            continue;
        uint32_t before = owner_of(f, file, false), now = owner_of(f, file, true);
        if (before != now && (from == UINT32_MAX || before == from) && (to == UINT32_MAX || now == to) && !n--)
            return file;
    }
    bail_out("too little has moved");
}

/* What a node holds and does not own. */
static uint64_t foreign_files(struct fake *f, uint32_t node)
{
    uint64_t foreign = 0;
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog); file++)
        foreign += dataset_size(f->dataset, file) > 0 && dataset_size(f->dataset, file) <= EXTENT_BYTES &&
                   store_holds(f->node[node].store, file, 0) && owner_of(f, file, true) != node;
    return foreign;
}

static uint64_t all_foreign(struct fake *f)
{
    uint64_t foreign = 0;
    for (uint32_t i = 0; i < f->nodes; i++)
        foreign += foreign_files(f, i);
    return foreign;
}

struct endless_reader {
    struct fake *f;
    uint64_t random;
    atomic_bool *stop;
    uint64_t reads, wrong;
    pthread_t thread;
};

static void *read_on(void *argument)
{
    struct endless_reader *r = argument;
    while (!atomic_load(r->stop)) {
        uint32_t file = (uint32_t)(random_next(&r->random) % catalog_files(r->f->dataset->catalog));
        if (!dataset_size(r->f->dataset, file))
            continue;
        struct span span = dataset_random_span(r->f->dataset, file, &r->random);
        struct store *store = r->f->node[random_next(&r->random) % r->f->nodes].store;
        r->wrong += read_check(store, r->f->dataset, &span, NULL) != 0;
        r->reads++;
    }
    return NULL;
}

/* Readers everywhere, from before a turn until after its move. */
static void turn_and_read(struct fake *f, const struct turn *turn, uint64_t k)
{
    static struct endless_reader reader[READERS];
    atomic_bool stop = false;
    uint64_t reads = 0, wrong = 0;
    for (int i = 0; i < READERS; i++) {
        reader[i] = (struct endless_reader){.f = f, .random = (uint64_t)i + 1, .stop = &stop};
        if (pthread_create(&reader[i].thread, NULL, read_on, &reader[i]))
            bail_out("a thread");
    }
    fake_turn(f, turn);
    wait_until(all_moved(f, k));
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        reads += reader[i].reads;
        wrong += reader[i].wrong;
    }
    ok(reads > 0 && wrong == 0, "%llu reads meanwhile, all of them right", (unsigned long long)reads);
}

static void check_moved(struct fake *f)
{
    uint64_t to_come = 0, come = 0, sent = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct move_news n = news_of(f, i).move;
        to_come += n.bytes;
        come += n.come_bytes;
        sent += n.sent_bytes;
        is_uint(n.refused_bytes, 0, "node %u refused nothing", i);
        is_uint(n.come_samples, n.samples, "all samples of node %u came", i);
    }
    ok(to_come > 0, "something was to come");
    is_uint(come, to_come, "all of it came");
    ok(sent > 0, "and was sent");
}

static bool owned_is_local(struct fake *f, uint32_t node)
{
    bool local = true;
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog); file++) {
        enum place place;
        uint64_t size = dataset_size(f->dataset, file);
        if (!size || size > EXTENT_BYTES || owner_of(f, file, true) != node)
            continue;
        struct span span = {file, (uint32_t)(size < SPAN_BYTES ? size : SPAN_BYTES), 0};
        local &= read_check(f->node[node].store, f->dataset, &span, &place) == 0 && place == PLACE_RAM;
    }
    return local;
}

/* Copies that this node gave away in a turn, and holds still. */
static uint64_t copies_of(struct fake *f, uint32_t node, const bool *gave)
{
    uint64_t copies = 0;
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog); file++)
        copies += gave[file] && store_holds(f->node[node].store, file, 0) && owner_of(f, file, true) != node;
    return copies;
}

/* What a node has given away in the last turn. */
static uint64_t note_given(struct fake *f, uint32_t node, bool *gave)
{
    uint64_t count = 0;
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog); file++) {
        uint64_t size = dataset_size(f->dataset, file);
        gave[file] =
            size > 0 && size <= EXTENT_BYTES && owner_of(f, file, false) == node && owner_of(f, file, true) != node;
        count += gave[file];
    }
    return count;
}

/* With room for all of it: what leaves in a turn stays where it was until the second turn after that. */
static void test_exchange(void)
{
    struct fake f;
    static bool gave[2][1 << 16];
    peering_join(&f, 3, LONG);
    stage_all(&f);
    uint64_t source = peering_source_bytes(&f);
    exchange.fraction = TURN_WHOLE / 4;
    turn_and_read(&f, &exchange, 1);
    check_moved(&f);
    uint64_t given = note_given(&f, 0, gave[0]);
    ok(given > 0 && copies_of(&f, 0, gave[0]) == given, "what has left stays where it was, too");
    for (uint32_t i = 0; i < f.nodes; i++)
        ok(owned_is_local(&f, i), "node %u reads what it owns from its tiers", i);
    exchange.epoch = 0; /* turns are counted, not epochs */
    turn_and_read(&f, &exchange, 2);
    uint64_t since = note_given(&f, 0, gave[1]), here = copies_of(&f, 0, gave[0]);
    ok(here > 0 && copies_of(&f, 0, gave[1]) == since, "until the second turn after that: %ju of %ju came back",
       (uintmax_t)(given - here), (uintmax_t)given);
    exchange.epoch = 1000;
    turn_and_read(&f, &exchange, 3);
    for (uint32_t file = 0; file < catalog_files(f.dataset->catalog); file++)
        gave[0][file] = gave[0][file] && !gave[1][file] && owner_of(&f, file, false) != 0;
    wait_until(copies_of(&f, 0, gave[0]) == 0);
    pass("then it is dropped");
    ok(all_foreign(&f) > 0, "and what left later is not");
    for (uint32_t i = 0; i < f.nodes; i++)
        ok(peering_read_all(&f, i), "every byte is right on node %u", i);
    is_uint(peering_source_bytes(&f), source, "and none came from the source");
    fake_end(&f);
    exchange = (struct turn){TURN_EXCHANGE, TURN_WHOLE, EPOCH, 0};
}

/* A reader asks the owner, and that one the owner before: no one asks any further. */
static void test_chain(void)
{
    struct fake f;
    struct reader reader;
    peering_join(&f, 3, LONG);
    stage_all(&f);
    uint64_t source = peering_source_bytes(&f);
    peering_harm(&f, 0, UINT32_MAX, FAKE_HOLD);
    fake_turn(&f, &exchange);
    uint32_t file = moved_file(&f, 0, 1, 0);
    wait_until(news_of(&f, 1).turn == 1 && news_of(&f, 2).turn == 1);
    ok(!store_holds(f.node[1].store, file, 0), "what node 0 does not give is not on node 1");
    reader_start(&reader, &f, 2, file);
    wait_until(atomic_load(&f.node[1].waits) > 0);
    is_uint(atomic_load(&f.node[2].asks) - atomic_load(&f.node[2].asks_before), 1, "node 2 asks node 1");
    uint32_t asked = atomic_load(&f.node[0].asks) - atomic_load(&f.node[0].asks_before);
    peering_harm(&f, 0, 0, FAKE_NONE);
    for (int i = 0; !all_moved(&f, 1); i++) {
        fake_let_go(&f);
        wait_step(i, "all has come");
    }
    ok(readers_join(&reader, 1, PLACE_PEER), "and has it from there");
    is_uint(atomic_load(&f.node[0].asks) - atomic_load(&f.node[0].asks_before), asked, "node 0 asked nobody for it");
    is_uint(peering_source_bytes(&f), source, "nothing came from the source");
    fake_end(&f);
}

/* What the owner before says cannot be trusted: it is read from the source then. */
static void test_lies(void)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    stage_all(&f);
    peering_harm(&f, 0, UINT32_MAX, FAKE_DAMAGE);
    uint64_t source = peering_source_bytes(&f);
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 1));
    ok(peering_counts(&f, 1).bad > 0, "what does not verify is noticed");
    for (uint32_t i = 0; i < f.nodes; i++)
        ok(peering_read_all(&f, i), "every byte is right on node %u", i);
    ok(peering_source_bytes(&f) > source, "what was damaged is read from the source");
    fake_end(&f);
}

static void test_silence(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, SECOND);
    stage_all(&f);
    peering_harm(&f, 0, UINT32_MAX, FAKE_SWALLOW);
    fake_turn(&f, &exchange);
    wait_until(news_of(&f, 1).turn == 1);
    uint32_t file = moved_file(&f, 0, 1, 0);
    is_int(peering_read(&f, 1, file, &place), 0, "the owner before is silent: right all the same");
    is_int(place, PLACE_SOURCE, "from the source");
    peering_harm(&f, 0, 0, FAKE_NONE);
    wait_until(all_moved(&f, 1));
    pass("when it speaks again the move goes on");
    is_uint(news_of(&f, 1).move.come_bytes, news_of(&f, 1).move.bytes, "and all comes");
    fake_end(&f);
}

static uint64_t parked_on(struct fake *f, uint32_t node)
{
    struct store_stats stats;
    store_stats(f->node[node].store, &stats);
    return stats.parked;
}

/* A pull that meets a reader's load waits for the source with it: the move does not. */
static void test_hanging_source(void)
{
    struct fake f;
    struct reader reader;
    peering_join_faulty(&f, 2, SECOND);
    faults_set("hang=*");
    peering_harm(&f, 0, UINT32_MAX, FAKE_HOLD);
    fake_turn(&f, &exchange);
    wait_until(news_of(&f, 1).turn == 1);
    reader_start(&reader, &f, 1, moved_file(&f, 0, 1, 0));
    wait_until(parked_on(&f, 1) > 0);
    peering_harm(&f, 0, 0, FAKE_NONE);
    for (int i = 0; !all_moved(&f, 1); i++) {
        fake_let_go(&f);
        wait_step(i, "the move ends");
    }
    pass("the source hangs, and a reader with it: the move ends");
    exchange.epoch++;
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 2));
    pass("and so does the next one");
    faults_set("");
    ok(readers_join(&reader, 1, PLACE_SOURCE), "when the source is back the reader has its bytes");
    fake_end(&f);
}

/* Nobody holds anything: nothing arrives, and nothing is read for it. */
static void test_nothing(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, LONG);
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 1));
    is_uint(peering_source_bytes(&f), 0, "nobody holds anything: nothing is read from the source");
    uint32_t file = moved_file(&f, 0, 1, 0);
    is_int(peering_read(&f, 0, file, &place), 0, "then a read");
    is_int(place, PLACE_PEER, "comes from its owner");
    is_int(peering_read(&f, 1, file, &place), 0, "and there");
    is_int(place, PLACE_RAM, "it is kept");
    is_uint(peering_source_bytes(&f), dataset_size(&dataset, file), "having been read once");
    fake_end(&f);
}

/* What is dropped has been stored, as its owner has said. */
static void test_confirm(void)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    stage_all(&f);
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 1));
    exchange.fraction = 0; /* a turn that moves nothing counts, too */
    exchange.epoch++;
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 2));
    uint64_t foreign = foreign_files(&f, 0);
    peering_harm(&f, 1, UINT32_MAX, FAKE_HOLD);
    exchange.epoch++;
    fake_turn(&f, &exchange);
    wait_until(foreign_files(&f, 1) == 0);
    ok(foreign > 0 && foreign_files(&f, 0) == foreign, "what is not confirmed is not dropped");
    peering_harm(&f, 1, 0, FAKE_NONE);
    for (int i = 0; foreign_files(&f, 0); i++) {
        fake_let_go(&f);
        wait_step(i, "all is dropped");
    }
    ok(news_of(&f, 0).move.dropped_bytes > 0, "then it is, and counted");
    fake_end(&f);
    exchange = (struct turn){TURN_EXCHANGE, TURN_WHOLE, EPOCH, 0};
}

/* Two tiers that are full except for a sixteenth: each file's room comes of another one that has left. */
static struct dataset tight;
enum { TIGHT = 160, TIGHT_BYTES = 300000 };

static void begin_tight(struct fake *f)
{
    uint64_t ram[FAKE_NODES] = {25 * MIB, 25 * MIB};
    fake_begin(f, &tight, 2, ram, LONG, NULL);
    fake_join(f, 1);
    stage_all(f);
    is_uint(peering_source_bytes(f), catalog_bytes(tight.catalog), "two small tiers are filled");
}

static void test_room(void)
{
    struct fake f;
    uint64_t rewritten = 0;
    begin_tight(&f);
    turn_and_read(&f, &exchange, 1);
    check_moved(&f);
    for (uint32_t i = 0; i < 2; i++) {
        struct move_news n = news_of(&f, i).move;
        ok(n.dropped_bytes > 0, "node %u dropped for room", i);
        rewritten += n.rewritten_bytes;
        diag("node %u: %llu bytes came, %llu dropped, %llu rewritten, %.3f s", i, (unsigned long long)n.come_bytes,
             (unsigned long long)n.dropped_bytes, (unsigned long long)n.rewritten_bytes, (double)n.nanoseconds / 1e9);
    }
    ok(rewritten > 0, "what had to be written again is counted");
    is_uint(peering_source_bytes(&f), catalog_bytes(tight.catalog), "nothing came from the source");
    fake_end(&f);
}

/* The n-th of the files that should have come and did not; TIGHT: there are no more. */
static uint32_t refused_file(struct fake *f, uint32_t node, uint32_t n)
{
    for (uint32_t file = 0; file < TIGHT; file++)
        if (owner_of(f, file, true) == node && owner_of(f, file, false) != node &&
            !store_holds(f->node[node].store, file, 0) && !n--)
            return file;
    return TIGHT;
}

/* Node 0 gets nothing, so node 1 has no room. */
static void test_refused(void)
{
    struct fake f;
    enum place place;
    begin_tight(&f);
    for (uint32_t i = 0; i < 2; i++)
        store_stage_stop(f.node[i].store);
    peering_harm(&f, 1, UINT32_MAX, FAKE_ERROR);
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 1));
    struct move_news n = news_of(&f, 1).move;
    ok(n.refused_samples > 0 && n.come_bytes + n.refused_bytes == n.bytes, "what finds no room is refused");
    uint64_t source = peering_source_bytes(&f);
    uint32_t file = refused_file(&f, 1, 0), refused = 0, held = 0;
    is_int(peering_read(&f, 1, file, &place), 0, "it can be read there");
    is_int(place, PLACE_PEER, "from who owned it before");
    is_int(peering_read(&f, 0, file, &place), 0, "and there");
    is_int(place, PLACE_RAM, "where it is held");
    is_uint(peering_source_bytes(&f), source, "without the source");
    peering_harm(&f, 1, 0, FAKE_NONE);
    for (; (file = refused_file(&f, 1, refused)) < TIGHT; refused++)
        held += store_holds(f.node[0].store, file, 0);
    is_uint(refused, n.refused_samples, "as many as were counted did not come");
    is_uint(held, refused, "all of them are held by who owned them before");
    wait_until(foreign_files(&f, 0) == refused);
    pass("who goes on to hold them, when it has dropped what came");
    for (uint32_t i = 0; i < refused; i++)
        held -= peering_read(&f, 1, refused_file(&f, 1, i), &place) == 0 && place == PLACE_PEER;
    is_uint(held, 0, "and serves them all");
    fake_end(&f);
}

static uint64_t unowned(struct fake *f)
{
    struct world_view view = fake_view(f, 0);
    uint64_t count = layout_unowned(view.owners);
    peers_view_release(&view);
    return count;
}

/* With the mount options `exchange` and `exchange_rate`. */
static void test_options(void)
{
    enum { RATE = 20 << 20 };
    static const uint64_t ram[FAKE_NODES] = {32 * MIB, 32 * MIB};
    struct fake f;
    fake_begin(&f, &tight, 2, ram, LONG, NULL);
    fake_join(&f, 1);
    is_uint(unowned(&f), 0, "all has an owner");
    fake_end(&f);
    fake_begin(&f, &tight, 2, ram, LONG, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        f.node[i].config.exchange = true;
        f.node[i].config.exchange_rate = RATE;
        fake_close(&f, i);
        fake_open(&f, i, false);
    }
    fake_join(&f, 1);
    ok(unowned(&f) > 0, "but not where room is left for an exchange");
    stage_all(&f);
    fake_turn(&f, &exchange);
    wait_until(all_moved(&f, 1));
    for (uint32_t i = 0; i < 2; i++) {
        struct move_news n = news_of(&f, i).move;
        ok(n.bytes > 0 && n.come_bytes == n.bytes, "node %u has what was to come", i);
        ok((double)n.nanoseconds / 1e9 > (double)n.bytes / RATE - 0.2, "node %u: no faster than the rate: %.3f s", i,
           (double)n.nanoseconds / 1e9);
    }
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    dataset_begin(&tight);
    for (int i = 0; i < TIGHT; i++) {
        char name[32];
        snprintf(name, sizeof name, "random-%03d", i);
        dataset_add(&tight, name, TIGHT_BYTES);
    }
    dataset_scan(&tight);
    test_exchange();
    test_chain();
    test_lies();
    test_silence();
    test_hanging_source();
    test_nothing();
    test_confirm();
    test_room();
    test_refused();
    test_options();
    dataset_end(&tight);
    return peering_done();
}
