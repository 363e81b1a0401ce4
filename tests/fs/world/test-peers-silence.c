/* Peers that do not answer, answer late, or answer some: nobody waits beyond the timeout, and who is asked again. The
 * clock stands while they are silent, and the tests move it. */
#include "tests/fs/world/peering.h"

#include "tests/fs/base/moved-clock.h"
#include "tests/lib/tap.h"

#include <errno.h>

static void end(struct fake *f)
{
    clock_run();
    fake_end(f);
}

static void await_over(struct reader *r)
{
    wait_until(atomic_load(&r->over));
}

static void test_silence(void)
{
    struct fake f;
    struct reader reader, later;
    enum place place;
    peering_join(&f, 3, LONG);
    clock_stand();
    uint32_t file = peering_owned(&f, 1, 0), next = peering_owned(&f, 1, 1);
    uint32_t others = peering_owned(&f, 2, 1), other = peering_owned(&f, 2, 0);
    is_int(peering_read(&f, 1, file, NULL) + peering_read(&f, 2, others, NULL), 0,
           "two nodes have a file each, and need not say WAIT");
    peering_harm(&f, 1, 1, FAKE_HOLD);
    peering_harm(&f, 2, 1, FAKE_HOLD);
    reader_start(&reader, &f, 0, file);
    wait_until(fake_held() == 1);
    clock_add(LONG / 2);
    reader_start(&later, &f, 0, others);
    wait_until(fake_held() == 2);
    clock_add(LONG / 2);
    await_over(&reader);
    ok(!atomic_load(&later.over), "half of the timeout ends no read");
    ok(readers_join(&reader, 1, PLACE_SOURCE), "after the timeout, what a silent peer owns comes from the source");
    is_int(peering_peer(&f, 0, 1), PEER_SUSPECT, "it is suspected");
    is_uint(peering_counts(&f, 0).timeouts, 1, "and counted");
    uint32_t served = atomic_load(&f.node[1].served);
    is_int(peering_read(&f, 0, next, &place), 0, "the next one is right");
    ok(place == PLACE_SOURCE && atomic_load(&f.node[1].served) == served, "and does not ask it");
    peering_reads(&f, 0, other, PLACE_PEER, "another peer's is right", "and is asked of that");
    clock_add(LONG / 2);
    ok(readers_join(&later, 1, PLACE_SOURCE), "a read that was asked for later ends after its own timeout");
    is_uint(peering_counts(&f, 0).timeouts, 2, "and is counted");
    fake_let_go(&f);
    wait_until(peering_peer(&f, 0, 1) == PEER_GOOD);
    peering_reads(&f, 0, next, PLACE_PEER, "once it answered after all", "it is asked again");
    end(&f);
}

/* A thread that waits for a silent node is missing elsewhere: it goes when the node is known to be silent. */
static void test_asked_later(void)
{
    struct fake f;
    struct reader first, later;
    peering_join(&f, 2, LONG);
    clock_stand();
    peering_harm(&f, 1, 2, FAKE_SWALLOW);
    reader_start(&first, &f, 0, peering_owned(&f, 1, 0));
    wait_until(peering_asking(&f, 0, 0).asked == 1);
    clock_add(LONG / 4 * 3);
    reader_start(&later, &f, 0, peering_owned(&f, 1, 1));
    wait_until(peering_asking(&f, 0, 0).asked == 2);
    clock_add(LONG / 4);
    await_over(&later);
    pass("a read that was asked for later ends with the first, when the node is known to be silent");
    bool right = readers_join(&later, 1, PLACE_SOURCE);
    ok(readers_join(&first, 1, PLACE_SOURCE) && right, "two reads of a node that falls silent are right");
    is_uint(peering_counts(&f, 0).timeouts, 2, "both are counted");
    end(&f);
}

/* Its slots are given back by nobody, and others' reads need some. */
static void test_swallowed(void)
{
    struct fake f;
    struct reader reader;
    enum place place;
    bool source = true;
    peering_join(&f, 3, LONG);
    clock_stand();
    peering_harm(&f, 1, 1000, FAKE_SWALLOW);
    uint32_t file = peering_owned(&f, 1, 0);
    reader_start(&reader, &f, 0, file);
    wait_until(peering_asking(&f, 0, 0).asked == 1);
    clock_add(LONG);
    ok(readers_join(&reader, 1, PLACE_SOURCE), "a peer that is gone without a word");
    for (int i = 0; i < 6; i++)
        source &= peering_read(&f, 0, file, &place) == 0 && place == PLACE_SOURCE;
    ok(source, "its share comes from the source");
    is_uint(atomic_load(&f.node[0].asks), 1, "without a question");
    peering_reads(&f, 0, peering_owned(&f, 2, 0), PLACE_PEER, "others'", "from them");
    end(&f);
}

/* Nodes that are silent all at once take nearly all slots with them: no reader waits for one then. */
static void test_no_slots(void)
{
    enum { SILENT = 5, READERS = 32 };
    struct fake f;
    static struct reader reader[SILENT * READERS];
    enum place place;
    peering_join(&f, SILENT + 2, LONG);
    clock_stand();
    uint32_t other = peering_owned(&f, SILENT + 1, 0);
    for (uint32_t i = 0; i < SILENT; i++) {
        peering_harm(&f, i + 1, 1000, FAKE_SWALLOW);
        readers_start(&reader[i * READERS], READERS, &f, 0, peering_owned(&f, i + 1, 0));
    }
    wait_until(peering_asking(&f, 0, 0).asked == RING_IN &&
               peering_asking(&f, 0, 0).queued == SILENT * READERS - RING_IN);
    clock_add(LONG);
    bool right = readers_join(reader, SILENT * READERS, PLACE_SOURCE);
    ok(right, "%d nodes that fall silent at once: every read is right", SILENT);
    for (int i = 0; i < 4; i++)
        right &= peering_read(&f, 0, other, &place) == 0;
    ok(right, "and then none waits for a slot: the clock stands");
    end(&f);
}

/* The first fetches of a node in its first world: their slots and numbers are known. Returns when it has heard. */
static void say_wait(struct fake *f, uint32_t node, uint32_t slots)
{
    uint64_t now = clock_now(), asked = peering_asking(f, node, now).asked;
    for (uint32_t slot = 0; slot < slots; slot++)
        fake_push(f, node,
                  &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EAGAIN});
    wait_until(peering_asking(f, node, now).unheard == asked - slots);
}

/* A read that waited long for a slot, since slow nodes had them all, says nothing about the node that is asked then. */
static void test_late_slot(void)
{
    enum { SLOW = 4, READERS = RING_IN / SLOW };
    struct fake f;
    static struct reader reader[SLOW * READERS], late;
    peering_join(&f, SLOW + 2, LONG);
    clock_stand();
    uint32_t file = peering_owned(&f, SLOW + 1, 0);
    is_int(peering_read(&f, SLOW + 1, file, NULL), 0, "a node has a file, and need not say WAIT");
    for (uint32_t i = 0; i <= SLOW; i++)
        peering_harm(&f, i + 1, 1000, FAKE_HOLD);
    for (uint32_t i = 0; i < SLOW; i++)
        readers_start(&reader[i * READERS], READERS, &f, 0, peering_owned(&f, i + 1, 0));
    for (uint32_t i = 0; i < SLOW; i++)
        wait_until(atomic_load(&f.node[i + 1].served) == READERS);
    reader_start(&late, &f, 0, file);
    wait_until(peering_asking(&f, 0, 0).queued == 1);
    clock_add(LONG / 2);
    say_wait(&f, 0, SLOW * READERS);
    fake_let_one_go(&f);
    wait_until(atomic_load(&f.node[SLOW + 1].served) == 1);
    clock_add(LONG / 2);
    await_over(&late);
    ok(readers_join(&late, 1, PLACE_SOURCE),
       "a read that waited for a slot, and then for an answer, ends after one timeout in all");
    is_uint(atomic_load(&f.node[SLOW + 1].served), 1, "the node was asked");
    is_int(peering_peer(&f, 0, SLOW + 1), PEER_GOOD, "and is not suspected: it had no time to answer");
    fake_let_go(&f);
    ok(readers_join(reader, SLOW * READERS, PLACE_PEER), "what was held back arrives");
    end(&f);
}

/* A node that answers some, and loses most. */
static void test_lost_answers(void)
{
    enum { READERS = 32 };
    struct fake f;
    static struct reader reader[READERS];
    enum place place;
    peering_join(&f, 2, LONG);
    clock_stand();
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, READERS, FAKE_SWALLOW);
    readers_start(reader, READERS, &f, 0, file);
    wait_until(atomic_load(&f.node[1].served) == READERS);
    clock_add(LONG / 2);
    say_wait(&f, 0, 1);
    clock_add(LONG / 2);
    wait_until(peering_counts(&f, 0).timeouts == READERS - 1);
    is_int(peering_peer(&f, 0, 1), PEER_GOOD, "a node that is heard of is good, though its answers are lost");
    is_int(peering_read(&f, 0, file, &place), 0, "the next read");
    is_int(place, PLACE_SOURCE, "waits for none of its slots");
    for (uint32_t slot = 0; slot < READERS; slot++)
        fake_push(&f, 0, &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EIO});
    ok(readers_join(reader, READERS, PLACE_SOURCE), "the lost ones came from the source");
    wait_until(peering_asking(&f, 0, 0).left == 0);
    atomic_store(&f.node[1].fault, FAKE_NONE);
    peering_reads(&f, 0, file, PLACE_PEER, "once the slots are back", "it is asked again");
    end(&f);
}

/* What an owner answers to silent nodes stays in its slots. */
static void ask_silently(struct fake *f, uint32_t nodes, uint32_t questions, uint32_t file)
{
    for (uint32_t i = 0; i < nodes * questions; i++)
        fake_ask_silently(f, 0, i % nodes + 1, file, 0);
}

/* A read of what the owner, which has no slot, owns: it says WAIT, and after its timeout that it is busy. */
static void read_of_busy(struct fake *f, uint32_t node, uint32_t file, uint64_t timeout, const char *what)
{
    struct reader reader;
    uint32_t waits = atomic_load(&f->node[0].waits);
    reader_start(&reader, f, node, file);
    wait_until(atomic_load(&f->node[0].waits) > waits);
    clock_add(timeout / 2);
    ok(!atomic_load(&reader.over), "%s waits", what);
    clock_add(timeout / 2);
    ok(readers_join(&reader, 1, PLACE_SOURCE), "after the owner's timeout it comes from the source");
}

static void test_silent_askers(void)
{
    enum { ASKERS = 4, QUESTIONS = 40, EACH = RING_OUT / 4 };
    const uint64_t timeout = LONG / 8;
    struct fake f;
    enum place place;
    peering_begin(&f, ASKERS + 2, timeout);
    fake_close(&f, ASKERS + 1);
    f.node[ASKERS + 1].config.peer_timeout = LONG;
    fake_open(&f, ASKERS + 1, false);
    fake_join(&f, 1);
    clock_stand();
    uint32_t file = peering_owned(&f, 0, 0), next = peering_owned(&f, 0, 1);
    is_int(peering_read(&f, 0, file, &place), 0, "an owner has a file");
    ask_silently(&f, ASKERS / 2, QUESTIONS, file);
    for (int i = 0; atomic_load(&f.refused) < ASKERS / 2 * (QUESTIONS - EACH); i++) {
        wait_step(i, "who waits for a slot too long is told so");
        clock_add(timeout / 8);
    }
    is_uint(atomic_load(&f.stuck), ASKERS / 2 * EACH, "nodes that fall silent take a share of the slots each");
    peering_reads(&f, ASKERS + 1, file, PLACE_PEER, "another node", "is answered");

    ask_silently(&f, ASKERS, EACH, file);
    wait_until(atomic_load(&f.stuck) == RING_OUT);
    read_of_busy(&f, ASKERS + 1, file, timeout, "once all slots are taken, a read of what the owner holds");
    read_of_busy(&f, ASKERS + 1, next, timeout, "so does one of what it has to load");
    is_int(peering_peer(&f, ASKERS + 1, 0), PEER_GOOD, "it is not suspected");
    end(&f);
}

/* A peer is not silent while it says WAIT: a read that has waited longer than the timeout is answered. */
static void test_waits(void)
{
    struct fake f;
    struct reader reader;
    peering_join(&f, 2, LONG);
    clock_stand();
    peering_harm(&f, 1, 1, FAKE_HOLD);
    reader_start(&reader, &f, 0, peering_owned(&f, 1, 0));
    wait_until(fake_held() == 1);
    for (int i = 0; i < 4; i++) {
        clock_add(LONG / 2);
        say_wait(&f, 0, 1);
    }
    fake_let_go(&f);
    pthread_join(reader.thread, NULL);
    is_int(reader.error, 0, "a read that was told to wait for twice the timeout");
    is_int(reader.place, PLACE_PEER, "is answered by the peer");
    is_uint(peering_counts(&f, 0).timeouts, 0, "which counts as no timeout");
    end(&f);
}

/* From now on its server hangs, while its courier answers questions for this file, which is in the RAM tier. */
static void hang_server(struct fake *f, uint32_t node, uint32_t shared)
{
    is_int(peering_read(f, node, shared, NULL), 0, "a node has a file, and its server hangs");
    f->node[node].shared = shared;
    atomic_store(&f->node[node].hangs, true);
}

/* The same, and a read that needs the server waits for it, while its courier answers. */
static void hang_under_read(struct fake *f, struct reader *reader, uint32_t node, uint32_t shared, uint32_t lacked)
{
    hang_server(f, node, shared);
    reader_start(reader, f, 0, lacked);
    wait_until(atomic_load(&f->node[node].swallowed) == 1);
    clock_add(LONG / 2);
    peering_reads(f, 0, shared, PLACE_PEER, "its courier still answers", "from the RAM tier");
    clock_add(LONG / 2);
    ok(readers_join(reader, 1, PLACE_SOURCE), "what needs the server comes from the source after the timeout");
}

static void test_hung_server(void)
{
    struct fake f;
    struct reader reader;
    peering_join(&f, 2, LONG);
    clock_stand();
    uint32_t shared = peering_owned(&f, 1, 0), lacked = peering_owned(&f, 1, 1), next = peering_owned(&f, 1, 2);
    hang_under_read(&f, &reader, 1, shared, lacked);
    is_int(peering_peer(&f, 0, 1), PEER_SUSPECT, "the node is suspected, although its courier has answered");
    peering_reads(&f, 0, next, PLACE_SOURCE, "the next read that needs the server", "and waits for nobody");
    is_uint(atomic_load(&f.node[1].swallowed), 1, "the server was not asked");
    peering_reads(&f, 0, shared, PLACE_PEER, "what the courier has", "and is asked of it");
    is_uint(atomic_load(&f.node[0].asks_shared), 2, "both were questions for the courier alone");

    clock_add(LONG);
    peering_reads(&f, 0, shared, PLACE_PEER, "after the pause the courier answers the probe", "from the RAM tier");
    is_uint(atomic_load(&f.node[0].asks_shared), 2, "which the server could have answered");
    is_int(peering_peer(&f, 0, 1), PEER_SUSPECT, "that is no sign of the server");
    reader_start(&reader, &f, 0, lacked);
    wait_until(atomic_load(&f.node[1].swallowed) == 2);
    peering_reads(&f, 0, next, PLACE_SOURCE, "during the next probe others", "and wait for nobody");
    clock_add(LONG / 2);
    peering_reads(&f, 0, shared, PLACE_PEER, "nor for the courier", "which answers");
    clock_add(LONG / 2);
    ok(readers_join(&reader, 1, PLACE_SOURCE), "the probe ends after its timeout");
    is_uint(peering_counts(&f, 0).timeouts, 2, "two reads have waited in vain");
    atomic_store(&f.node[1].hangs, false);
    clock_add(LONG);
    peering_reads(&f, 0, next, PLACE_PEER, "when the server runs again", "it answers the next probe");
    is_int(peering_peer(&f, 0, 1), PEER_GOOD, "and the node is good");
    end(&f);
}

/* When the courier falls silent as well, one more read waits. */
static void test_hung_node(void)
{
    struct fake f;
    struct reader reader;
    peering_join(&f, 2, LONG);
    clock_stand();
    uint32_t shared = peering_owned(&f, 1, 0), lacked = peering_owned(&f, 1, 1);
    hang_under_read(&f, &reader, 1, shared, lacked);
    peering_harm(&f, 1, 1, FAKE_SWALLOW);
    reader_start(&reader, &f, 0, shared);
    wait_until(atomic_load(&f.node[0].asks_shared) == 1);
    pass("the courier is asked");
    clock_add(LONG);
    ok(readers_join(&reader, 1, PLACE_SOURCE), "it is silent as well");
    reader_start(&reader, &f, 0, lacked); /* a probe: the pause is over */
    wait_until(atomic_load(&f.node[1].swallowed) == 2);
    peering_reads(&f, 0, shared, PLACE_SOURCE, "then what it had", "and is asked of nobody");
    is_uint(atomic_load(&f.node[0].asks_shared), 1, "the courier was not asked again");
    clock_add(LONG);
    ok(readers_join(&reader, 1, PLACE_SOURCE), "the probe ends");
    end(&f);
}

/* The other node of node 0's group. */
static uint32_t find_companion(struct fake *f)
{
    struct world_view view = fake_view(f, 0);
    uint32_t node = 1, group = layout_group(view.owners, 0);
    while (layout_group(view.owners, node) != group)
        node++;
    peers_view_release(&view);
    return node;
}

static void test_hung_in_group(void)
{
    struct fake f;
    struct reader reader;
    peering_begin(&f, 4, LONG);
    fake_join(&f, 2);
    clock_stand();
    uint32_t companion = find_companion(&f), shared = peering_owned(&f, companion, 0);
    uint32_t lacked = peering_owned(&f, companion, 1);
    hang_under_read(&f, &reader, companion, shared, lacked);
    peering_reads(&f, 0, lacked, PLACE_PEER, "what its courier lacks", "and comes from the owner in the other group");
    is_uint(atomic_load(&f.node[0].asks_shared), 1, "the courier was asked first");
    end(&f);
}

int main(void)
{
    peering_set_up();
    test_silence();
    test_asked_later();
    test_swallowed();
    test_no_slots();
    test_late_slot();
    test_lost_answers();
    test_silent_askers();
    test_waits();
    test_hung_server();
    test_hung_node();
    test_hung_in_group();
    return peering_done();
}
