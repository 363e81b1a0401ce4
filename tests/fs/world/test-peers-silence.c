/* Peers that do not answer, answer late, or answer some: nobody waits beyond the timeout, and who is asked again. */
#include "tests/fs/world/peering.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <time.h>

static void test_silence(void)
{
    const uint64_t timeout = 2 * SECOND;
    struct fake f;
    enum place place;
    peering_join(&f, 3, timeout);
    uint32_t file = peering_owned(&f, 1, 0), next = peering_owned(&f, 1, 1), other = peering_owned(&f, 2, 0);
    peering_harm(&f, 1, 1, FAKE_HOLD);
    uint64_t began = clock_now();
    peering_reads(&f, 0, next, PLACE_SOURCE, "a peer that does not answer: the read is right", "from the source");
    uint64_t took = clock_now() - began;
    ok(took > timeout / 2 && took < 2 * timeout, "after one timeout: %llu ms", (unsigned long long)(took / 1000000));
    is_int(peering_peer(&f, 0, 1), PEER_SUSPECT, "it is suspected");
    is_uint(peering_counts(&f, 0).timeouts, 1, "and counted");
    uint32_t served = atomic_load(&f.node[1].served);
    is_int(peering_read(&f, 0, file, &place), 0, "the next one is right");
    ok(place == PLACE_SOURCE && atomic_load(&f.node[1].served) == served, "and does not ask it");
    peering_reads(&f, 0, other, PLACE_PEER, "another peer's is right", "and is asked of that");
    fake_let_go(&f);
    for (int i = 0; peering_peer(&f, 0, 1) != PEER_GOOD; i++)
        wait_step(i, "a late answer clears the suspicion");
    peering_reads(&f, 0, file, PLACE_PEER, "once it answered after all", "it is asked again");
    fake_end(&f);
}

/* A thread that waits for a silent node is missing elsewhere: it goes when the node is known to be silent. */
static void test_asked_later(void)
{
    const uint64_t timeout = 4 * SECOND;
    struct fake f;
    struct reader first, later;
    peering_join(&f, 2, timeout);
    peering_harm(&f, 1, 2, FAKE_SWALLOW);
    uint64_t began = clock_now();
    reader_start(&first, &f, 0, peering_owned(&f, 1, 0));
    while (clock_now() - began < timeout * 3 / 4) /* what passes for silence is a matter of time */
        nanosleep(&(struct timespec){.tv_nsec = (long)(timeout / 64)}, NULL);
    uint64_t asked = clock_now();
    reader_start(&later, &f, 0, peering_owned(&f, 1, 1));
    bool right = readers_join(&later, 1, PLACE_SOURCE);
    uint64_t took = clock_now() - asked;
    ok(readers_join(&first, 1, PLACE_SOURCE) && right, "two reads of a node that falls silent are right");
    ok(took < timeout * 3 / 4, "the later one ends with the first: after %llu ms",
       (unsigned long long)(took / MILLISECOND));
    is_uint(peering_counts(&f, 0).timeouts, 2, "both are counted");
    fake_end(&f);
}

/* Its slots are given back by nobody, and others' reads need some. */
static void test_swallowed(void)
{
    const uint64_t timeout = SECOND / 2;
    struct fake f;
    enum place place;
    peering_join(&f, 3, timeout);
    peering_harm(&f, 1, 1000, FAKE_SWALLOW);
    uint32_t file = peering_owned(&f, 1, 0);
    is_int(peering_read(&f, 0, file, &place), 0, "a peer that is gone without a word");
    for (int i = 0; peering_peer(&f, 0, 1) == PEER_SUSPECT && i < 6; i++)
        peering_read(&f, 0, file, &place);
    is_int(place, PLACE_SOURCE, "its share comes from the source");
    peering_reads(&f, 0, peering_owned(&f, 2, 0), PLACE_PEER, "others'", "from them");
    fake_end(&f);
}

/* Nodes that are silent all at once take nearly all slots with them: no reader waits for one then. */
static void test_no_slots(void)
{
    enum { SILENT = 5, READERS = 32 };
    const uint64_t timeout = 2 * SECOND;
    struct fake f;
    static struct reader reader[SILENT * READERS];
    enum place place;
    peering_join(&f, SILENT + 2, timeout);
    uint32_t other = peering_owned(&f, SILENT + 1, 0);
    for (uint32_t i = 0; i < SILENT; i++) {
        peering_harm(&f, i + 1, 1000, FAKE_SWALLOW);
        readers_start(&reader[i * READERS], READERS, &f, 0, peering_owned(&f, i + 1, 0));
    }
    bool right = readers_join(reader, SILENT * READERS, PLACE_SOURCE);
    ok(right, "%d nodes that fall silent at once: every read is right", SILENT);
    uint64_t began = clock_now();
    for (int i = 0; i < 4; i++)
        right &= peering_read(&f, 0, other, &place) == 0;
    ok(right && clock_now() - began < timeout, "and then none waits for a slot");
    fake_end(&f);
}

/* The first fetches of a node in its first world: their slots and numbers are known. */
static void say_wait(struct fake *f, uint32_t node, uint32_t slots)
{
    for (uint32_t slot = 0; slot < slots; slot++)
        fake_push(f, node,
                  &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EAGAIN});
}

static void await_served(struct fake *f, uint32_t node, uint32_t n)
{
    for (int i = 0; atomic_load(&f->node[node].served) < n; i++)
        wait_step(i, "a node answers");
}

/* A read that waited long for a slot, since slow nodes had them all, says nothing about the node that is asked then. */
static void test_late_slot(void)
{
    enum { SLOW = 4, READERS = 32 };
    const uint64_t timeout = 4 * SECOND;
    struct fake f;
    static struct reader reader[SLOW * READERS], late;
    peering_join(&f, SLOW + 2, timeout);
    uint32_t file = peering_owned(&f, SLOW + 1, 0);
    is_int(peering_read(&f, SLOW + 1, file, NULL), 0, "a node has a file, and need not say WAIT");
    for (uint32_t i = 0; i <= SLOW; i++)
        peering_harm(&f, i + 1, 1000, FAKE_HOLD);
    for (uint32_t i = 0; i < SLOW; i++)
        readers_start(&reader[i * READERS], READERS, &f, 0, peering_owned(&f, i + 1, 0));
    for (uint32_t i = 0; i < SLOW; i++)
        await_served(&f, i + 1, READERS);
    uint64_t began = clock_now();
    reader_start(&late, &f, 0, file);
    for (bool gone = false; !atomic_load(&late.over);) {
        say_wait(&f, 0, SLOW * READERS);
        if (!gone && clock_now() - began > timeout / 2) {
            fake_let_one_go(&f);
            gone = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(timeout / 64)}, NULL);
    }
    ok(readers_join(&late, 1, PLACE_SOURCE) &&
           clock_now() - began < timeout * 11 / 8, /* 12 / 8: a timeout of its own */
       "a read that waited for a slot, and then for an answer, ends in time");
    is_uint(atomic_load(&f.node[SLOW + 1].served), 1, "the node was asked");
    is_int(peering_peer(&f, 0, SLOW + 1), PEER_GOOD, "and is not suspected: it had no time to answer");
    fake_let_go(&f);
    ok(readers_join(reader, SLOW * READERS, PLACES), "what was held back arrives");
    fake_end(&f);
}

/* A node that answers some, and loses most. */
static void test_lost_answers(void)
{
    enum { READERS = 32 };
    const uint64_t timeout = 4 * SECOND; /* the readers must have begun by then */
    struct fake f;
    static struct reader reader[READERS];
    enum place place;
    peering_join(&f, 2, timeout);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, READERS, FAKE_SWALLOW);
    readers_start(reader, READERS, &f, 0, file);
    for (int i = 0; peering_counts(&f, 0).timeouts < READERS - 1; i++) {
        say_wait(&f, 0, 1);
        wait_step(i, "all answers but one are lost");
    }
    is_int(peering_peer(&f, 0, 1), PEER_GOOD, "a node that is heard of is good, though its answers are lost");
    uint64_t began = clock_now();
    is_int(peering_read(&f, 0, file, &place), 0, "the next read");
    ok(place == PLACE_SOURCE && clock_now() - began < SECOND / 2, "waits for none of its slots");
    for (uint32_t slot = 0; slot < READERS; slot++)
        fake_push(&f, 0, &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EIO});
    ok(readers_join(reader, READERS, PLACE_SOURCE), "the lost ones came from the source");
    atomic_store(&f.node[1].fault, FAKE_NONE);
    peering_reads(&f, 0, file, PLACE_PEER, "once the slots are back", "it is asked again");
    fake_end(&f);
}

/* What an owner answers to silent nodes stays in its slots. */
static void ask_silently(struct fake *f, uint32_t nodes, uint32_t questions, uint32_t file)
{
    for (uint32_t i = 0; i < nodes * questions; i++)
        fake_ask_silently(f, 0, i % nodes + 1, file, 0);
}

static void test_silent_askers(void)
{
    enum { ASKERS = 4, QUESTIONS = 40, EACH = RING_OUT / 4 };
    const uint64_t timeout = SECOND;
    struct fake f;
    enum place place;
    peering_begin(&f, ASKERS + 2, timeout);
    fake_close(&f, ASKERS + 1);
    f.node[ASKERS + 1].config.peer_timeout = LONG;
    fake_open(&f, ASKERS + 1, false);
    fake_join(&f, 1);
    uint32_t file = peering_owned(&f, 0, 0), next = peering_owned(&f, 0, 1);
    is_int(peering_read(&f, 0, file, &place), 0, "an owner has a file");
    ask_silently(&f, ASKERS / 2, QUESTIONS, file);
    for (int i = 0; atomic_load(&f.refused) < ASKERS / 2 * (QUESTIONS - EACH); i++)
        wait_step(i, "who waits for a slot too long is told so");
    is_uint(atomic_load(&f.stuck), ASKERS / 2 * EACH, "nodes that fall silent take a share of the slots each");
    peering_reads(&f, ASKERS + 1, file, PLACE_PEER, "another node", "is answered");

    ask_silently(&f, ASKERS, EACH, file);
    for (int i = 0; atomic_load(&f.stuck) < RING_OUT; i++)
        wait_step(i, "all slots are taken");
    uint32_t waits = atomic_load(&f.node[0].waits);
    uint64_t began = clock_now();
    peering_reads(&f, ASKERS + 1, file, PLACE_SOURCE, "once all slots are taken, a read of what the owner holds",
                  "comes from the source");
    peering_reads(&f, ASKERS + 1, next, PLACE_SOURCE, "so does one of what it has to load", "from there, too");
    ok(clock_now() - began < 3 * timeout, "each after the owner's timeout");
    ok(atomic_load(&f.node[0].waits) >= waits + 2, "until which it says WAIT");
    is_int(peering_peer(&f, ASKERS + 1, 0), PEER_GOOD, "it is not suspected");
    fake_end(&f);
}

/* A peer is not silent while it says WAIT: a read that has waited longer than the timeout is answered. */
static void test_waits(void)
{
    const uint64_t timeout = SECOND;
    struct fake f;
    struct reader reader;
    peering_join(&f, 2, timeout);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, 1, FAKE_HOLD);
    uint64_t began = clock_now();
    reader_start(&reader, &f, 0, file);
    while (clock_now() - began < 2 * timeout) {
        say_wait(&f, 0, 1);
        nanosleep(&(struct timespec){.tv_nsec = (long)(timeout / 8)}, NULL);
    }
    fake_let_go(&f);
    pthread_join(reader.thread, NULL);
    is_int(reader.error, 0, "a read that was told to wait for twice the timeout");
    is_int(reader.place, PLACE_PEER, "is answered by the peer");
    is_uint(peering_counts(&f, 0).timeouts, 0, "which counts as no timeout");
    fake_end(&f);
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
    return peering_done();
}
